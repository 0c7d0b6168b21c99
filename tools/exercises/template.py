"""A new chapter with its exercise: files that build, check themselves and render as they are."""
import pathlib
import re

from . import catalogue, skeleton
from .problem import ExerciseError

HERE = pathlib.Path(__file__).resolve().parent / "template"
FILES = {
    "main.cpp.in": "chapters/{name}/main.cpp",
    "README.md.in": "exercises/{name}/README.md",
    "solution.hpp.in": "exercises/{name}/solution/exercise.hpp",
    "tests.cpp.in": "exercises/{name}/tests.cpp",
    "mutant.patch.in": "exercises/{name}/mutants/mean_of_one_less.patch",
}


def lines_with(path, pattern, new):
    """Inserts a line behind the last one that matches a pattern."""
    lines = path.read_text().split("\n")
    at = [i for i, line in enumerate(lines) if re.match(pattern, line)]
    if not at:
        raise ExerciseError(f"{path.name} has no line like {pattern!r} to add the chapter behind")
    lines.insert(at[-1] + 1, new)
    path.write_text("\n".join(lines))


def widen_parts(path, number):
    """Makes a part of docs/course.json hold the chapter: the last part that begins before it."""
    text = path.read_text()
    parts = [(int(m[1]), int(m[2]), m) for m in
             re.finditer(r'"chapters": \[(\d+), (\d+)\]', text)]
    if any(first <= number <= last for first, last, _ in parts):
        return False
    before = [part for part in parts if part[1] < number]
    if not before:
        raise ExerciseError(f"docs/course.json has no part that could hold chapter {number}")
    first, _, match = max(before, key=lambda part: part[1])
    path.write_text(text[:match.start()] + f'"chapters": [{first}, {number}]' +
                    text[match.end():])
    return True


def create(root, number, topic):
    """Writes chapter and exercise NN_topic. @return the paths written, from `root`"""
    root = pathlib.Path(root)
    if not re.fullmatch(r"\d{1,2}", number) or int(number) == 0:
        raise ExerciseError(f"'{number}' is no chapter number: it is between 01 and 99")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", topic):
        raise ExerciseError(f"'{topic}' is no topic: small letters, digits and single "
                            "underscores, as in kv_cache")
    number = number.zfill(2)
    taken = [p for folder in ("chapters", "exercises") for p in root.glob(f"{folder}/{number}_*")]
    if taken:
        raise ExerciseError(f"{taken[0].relative_to(root)} has that number already")
    name = f"{number}_{topic}"
    before = sorted(p.parent.name for p in root.glob("chapters/[0-9][0-9]_*/main.*")
                    if p.parent.name < name)
    words = {"NAME": name, "NUMBER": number, "TITLE": topic.replace("_", " ").capitalize(),
             "BUILDS_ON": f"//! @builds-on {before[-1]}\n" if before else ""}
    written = []
    for source, target in FILES.items():
        path = root / target.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (HERE / source).read_text()
        path.write_text(re.sub(r"@([A-Z_]+)@", lambda m: words[m[1]], text))
        written.append(path)
    exercise = catalogue.Exercise(root / "exercises" / name)
    exercise.work.write_text(skeleton.of(exercise))
    written.append(exercise.work)
    lines_with(root / "chapters" / "CMakeLists.txt", r"lab_chapter\(",
               f"lab_chapter({name} LINKS lab::core)")
    lines_with(root / "README.md", r"\| \[?\d\d\b",
               f"| {number} | {words['TITLE'].lower()}: `chapters/{name}` | what it shows | "
               "its sources |")
    written += [root / "chapters" / "CMakeLists.txt", root / "README.md"]
    if widen_parts(root / "docs" / "course.json", int(number)):
        written.append(root / "docs" / "course.json")
    return [path.relative_to(root) for path in written]
