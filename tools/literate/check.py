"""Is every captured number current, and every claim about it true?"""
import math
import operator
import re

from literate import figure, ladder, ladder_cpu, page, plot
from literate.chapter import SCHEMA
from literate.errors import ChapterError

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
           "==": operator.eq, "!=": operator.ne}
# `lib/core/run.hpp` in prose: a reader will look for it, so it must be there.
NAMED_FILE = re.compile(r"`((?:lib|kernels|chapters|exercises|tests|tools|docs|models|cmake)/"
                        r"[\w./-]*[\w/])`")


def expectation(chapter, cell):
    """Raises ChapterError unless the claim KEY OP VALUE holds."""
    words = cell.text.split()
    if len(words) != 3 or words[1] not in COMPARE:
        raise chapter.error(cell.line, f"@expect needs KEY OP VALUE with OP one of "
                                       f"{' '.join(COMPARE)}, found '{cell.text}'")
    key, op, limit = words
    value = chapter.value(key, cell.line)["value"]
    try:
        bound, shown = float(limit), limit
    except ValueError:
        bound = chapter.value(limit, cell.line)["value"]
        shown = f"{limit} ({bound:g})"
    if math.isnan(bound) or not COMPARE[op](value, bound):
        raise chapter.error(cell.line, f"expected {key} {op} {shown}, captured {value:g}")


def check_cell(chapter, cell):
    """Raises ChapterError if what the cell names is not there or not true."""
    if cell.kind == "output":
        chapter.section(cell)
    elif cell.kind == "plot":
        plot.draw(chapter, cell)
    elif cell.kind == "figure":
        figure.load(chapter, cell)
    elif cell.kind == "show":
        chapter.shown(cell)
    elif cell.kind == "expect":
        expectation(chapter, cell)
    elif cell.kind in ("prose", "predict", "answer", "learn"):
        chapter.fill(cell)


def named_files(root, text, where):
    """The problems of a text that names files of the repository in `backticks`."""
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in NAMED_FILE.finditer(line):
            if not (root / match[1]).exists():
                problems.append(f"{where(number)}: it names `{match[1]}`, which is not there")
    return problems


def check_links(chapter, names):
    """The problems of the front matter: names of chapters and exercises that do not exist."""
    problems = []
    for word, wanted in (("builds-on", chapter.front["builds-on"]),
                         ("next", [chapter.front.get("next")])):
        for name in wanted:
            if name and name not in names:
                problems.append(f"{chapter.where(chapter.front_lines[word])}: @{word} {name}: "
                                f"there is no such chapter; there are {', '.join(sorted(names))}")
    exercise = chapter.front.get("exercise")
    if exercise and not (chapter.root / "exercises" / exercise).is_dir():
        problems.append(f"{chapter.where(chapter.front_lines['exercise'])}: @exercise {exercise}: "
                        f"there is no folder exercises/{exercise}")
    minutes = chapter.front.get("time")
    if minutes and not minutes.isdigit():
        problems.append(f"{chapter.where(chapter.front_lines['time'])}: @time needs a number of "
                        f"minutes, found '{minutes}'")
    return problems


def check(chapter, names):
    """The problems of a chapter, one line each. `names`: all the chapters there are."""
    problems = check_links(chapter, names)
    prose = "\n".join(line if line.strip().startswith("//!") else ""
                      for line in chapter.text.splitlines())
    problems += named_files(chapter.root, prose, chapter.where)
    problems += page.repeated_headings(chapter)
    if chapter.run is None:
        return problems + [f"{chapter.where(1)}: never captured; run: ./lab capture "
                           f"{chapter.name[:2]}"]
    if chapter.run.get("schema") != SCHEMA or chapter.run.get("chapter") != chapter.name:
        return problems + [f"{chapter.where(1)}: captured.json is not a {SCHEMA} of "
                           f"{chapter.name}; run: ./lab capture {chapter.name[:2]}"]
    try:
        lines = {str(path.relative_to(chapter.root)): line
                 for path, line in chapter.measured_files().items()}
        for name in chapter.stale():
            problems.append(f"{chapter.where(lines.get(name, 1))}: the code of {name} changed since "
                            f"the capture of {chapter.run['date']}; run: ./lab capture "
                            f"{chapter.name[:2]}")
    except ChapterError as problem:
        problems.append(str(problem))
    for cell in chapter.front["learn"] + chapter.cells:
        try:
            check_cell(chapter, cell)
        except ChapterError as problem:
            if str(problem) not in problems:
                problems.append(str(problem))
    return problems


def check_documents(root):
    """The problems of docs/*.md: files they name that are not there."""
    problems = []
    for path in sorted((root / "docs").glob("*.md")):
        problems += named_files(root, path.read_text(),
                                lambda line, p=path: f"{p.relative_to(root)}:{line}")
    return problems


def check_all(course, words=()):
    """The problems of the named chapters; of all of them and of the documents where none is."""
    names = set(course.by_name)
    problems = [line for chapter in course.find(words) for line in check(chapter, names)]
    if words:
        return problems
    return (problems + check_documents(course.root) + ladder.problems(course.root)
            + ladder_cpu.problems(course.root))
