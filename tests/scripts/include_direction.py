"""Which file may include which: a file includes only to its right.

    chapters, exercises -> lib/<technique> -> lib/decode -> lib/model -> lib/device -> kernels
    -> lib/core

Tools stand where chapters stand. Tests see everything. Nothing but a test includes a chapter.
"""
import pathlib
import posixpath
import re

RIGHT_OF = {"core": 0, "kernels": 1, "device": 2, "model": 3, "decode": 4, "technique": 5,
            "chapters": 6, "exercises": 6, "tools": 6, "tests": 7}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SOURCES = (".hpp", ".cpp", ".cu", ".cuh", ".inc")


def layer(path):
    """The layer of a path from the repository root; None outside the sources."""
    parts = path.split("/")
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1] if parts[1] in ("core", "device", "model", "decode") else "technique"
    return parts[0] if parts[0] in RIGHT_OF else None


def target(includer, name):
    """The path that an include names: "lab/..." from its root, anything else from the file."""
    if name.startswith("lab/kernels/"):
        return "kernels/include/" + name
    if name.startswith("lab/"):
        return "lib/" + name[len("lab/"):]
    return posixpath.normpath(posixpath.join(posixpath.dirname(includer), name))


def allowed(includer, included):
    """Whether one file may include another, both as paths from the root."""
    source, goal = layer(includer), layer(included)
    if source is None or goal is None or source == "tests":
        return True
    if goal in ("chapters", "exercises"):
        return includer.split("/")[:2] == included.split("/")[:2]
    return RIGHT_OF[goal] <= RIGHT_OF[source]


def violations(root):
    """Every include under root that points to the left, as 'file: "include"'."""
    found = []
    for path in sorted(pathlib.Path(root).rglob("*")):
        includer = path.relative_to(root).as_posix()
        if path.suffix not in SOURCES or layer(includer) is None:
            continue
        for name in INCLUDE.findall(path.read_text(errors="replace")):
            if not allowed(includer, target(includer, name)):
                found.append(f'{includer}: "{name}"')
    return found
