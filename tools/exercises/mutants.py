"""Plausible mistakes: small patches against a solution, each with the hint it should trigger.

A mutant is a file of mutants/, a unified diff with a header:

    hint: what a student who made this mistake should hear
    fails: name of a test case that catches it      (one line for each)
    --- solution/exercise.hpp
    +++ solution/exercise.hpp
    @@ -3,3 +3,3 @@
"""
import dataclasses
import json
import re

from .problem import ExerciseError

HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
BUNDLED = "hints.json"      # in a student's bundle: hints and test cases, no patches


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    hint: str
    fails: tuple
    diff: str = ""


def parse(text, name):
    header, _, diff = text.partition("--- ")
    fields = [line.partition(": ") for line in header.splitlines() if line.strip()]
    hints = [value for key, _, value in fields if key == "hint"]
    fails = tuple(value for key, _, value in fields if key == "fails")
    if len(hints) != 1 or not diff or len(hints) + len(fails) != len(fields):
        raise ExerciseError(f"mutant {name}: it needs one 'hint: ...' line, 'fails: ...' lines "
                            "and a unified diff")
    return Mutant(name, hints[0], fails, "--- " + diff)


def apply(diff, text, name):
    """The text after a unified diff; every line of it must match exactly."""
    source, out, at = text.splitlines(), [], 0
    lines = diff.splitlines()[2:]
    if not lines or not HUNK.match(lines[0]):
        raise ExerciseError(f"mutant {name}: there is no @@ line after --- and +++")
    for line in lines:
        hunk = HUNK.match(line)
        if hunk:
            start = int(hunk[1]) - 1
            if start < at:
                raise ExerciseError(f"mutant {name}: its hunks are not in order")
            out += source[at:start]
            at = start
        elif line[:1] in (" ", "-", ""):
            if at >= len(source) or source[at] != line[1:]:
                raise ExerciseError(f"mutant {name}: line {at + 1} of the solution is not "
                                    f"'{line[1:].strip()}'; make the patch anew")
            if line[:1] != "-":
                out.append(source[at])
            at += 1
        elif line.startswith("+"):
            out.append(line[1:])
        else:
            raise ExerciseError(f"mutant {name}: '{line}' is no line of a unified diff")
    return "\n".join(out + source[at:]) + "\n"


def of(exercise):
    """The exercise's mutants; in a student's bundle what is left of them."""
    files = sorted((exercise.folder / "mutants").glob("*.patch"))
    if files:
        return [parse(file.read_text(), file.stem) for file in files]
    bundled = exercise.folder / BUNDLED
    if bundled.exists():
        return [Mutant(m["name"], m["hint"], tuple(m["fails"]))
                for m in json.loads(bundled.read_text())]
    return []


def as_hints(mutants):
    return json.dumps([{"name": m.name, "hint": m.hint, "fails": list(m.fails)}
                       for m in mutants], indent=1) + "\n"


def suspects(mutants, failed, task_tests):
    """The mutants that fail just these test cases of one task.

    @param failed      names of the test cases of the task that failed
    @param task_tests  names of all test cases of the task
    """
    return [m for m in mutants if failed and set(m.fails) & set(task_tests) == set(failed)]
