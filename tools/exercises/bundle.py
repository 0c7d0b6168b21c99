"""The course for students: the repository without solutions, mutants and example submissions."""
import io
import pathlib
import re
import subprocess
import tarfile

from . import catalogue, mutants, skeleton
from .problem import ExerciseError

LEFT_OUT = re.compile(r"exercises/[^/]+/(solution|mutants)/|tests/exercises/(?!CMakeLists\.txt$)"
                      r"|(build|\.git|\.ci)/|(.*/)?__pycache__/|submission-[^/]*\.zip$")
TOP = "decodelab"


def files(root):
    """The repository's files: those that git knows of, or all where it is not a checkout."""
    listed = subprocess.run(["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached",
                             "--others", "--exclude-standard"], cwd=root, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False) if (root / ".git").exists() \
        else None
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")]
    return sorted(n for n in set(names) if (root / n).is_file() and not LEFT_OUT.match(n))


def contents(root):
    """{path: bytes} of what differs from the repository: fresh skeletons, hints."""
    changed = {}
    for exercise in catalogue.all_exercises(root):
        if not exercise.solution.exists():
            raise ExerciseError("this is a student's bundle already: it has no solutions")
        folder = f"exercises/{exercise.name}"
        changed[f"{folder}/{exercise.work.name}"] = skeleton.of(exercise).encode()
        changed[f"{folder}/{mutants.BUNDLED}"] = mutants.as_hints(mutants.of(exercise)).encode()
    return changed


def write(root, out):
    """Writes the bundle. @return the number of files in it"""
    root = pathlib.Path(root)
    out = pathlib.Path(out)
    changed = contents(root)
    names = sorted({*files(root), *changed})
    out.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w:gz") as archive:
        for name in names:
            if name in changed:
                member = tarfile.TarInfo(f"{TOP}/{name}")
                member.size = len(changed[name])
                member.mode = 0o644
                archive.addfile(member, io.BytesIO(changed[name]))
            elif (root / name).resolve() != out.resolve():
                archive.add(root / name, f"{TOP}/{name}", recursive=False)
    return len(names)
