"""Runs the test cases of an exercise, one process each, and says what each one scored.

A crash, a hang or an early exit costs the test case it happens in, and no other.
"""
import contextlib
import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import stat
import tempfile
import xml.etree.ElementTree as ElementTree

from .sandbox import Limits, run as run_limited

PASSED, FAILED, BLOCKED = "passed", "failed", "blocked"
REPORT_BYTES = 4 << 20
REPORT_LINES = 8
UNWRITTEN = "is not written yet"
STUDENT_SEED = 1


@dataclasses.dataclass
class Result:
    """What one test case came to."""
    test: object                # a catalogue.TestCase
    outcome: str = FAILED
    how: str = ""               # of a failure: check, crash, time-out, early end
    message: str = ""           # the first thing that went wrong, in a line or two
    assertions: int = 0
    seconds: float = 0.0

    @property
    def passed(self):
        return self.outcome == PASSED

    @property
    def score(self):
        return self.test.points if self.passed else 0.0

    @property
    def unwritten(self):
        return UNWRITTEN in self.message


def read_report(path):
    """The XML that Catch2 wrote; None unless it is a plain file, complete, and just XML.

    A student's code could have put anything there, such as a link to another file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > REPORT_BYTES or about.st_nlink > 1:
            return None
        data = file.read(REPORT_BYTES)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return None
    try:
        return ElementTree.fromstring(data.decode(errors="replace"))
    except ElementTree.ParseError:
        return None


def words(element):
    return " ".join((element.text or "").split()) if element is not None else ""


def report_of(text):
    """The first of the emulator's findings in what a program said or threw; empty if none."""
    found = "".join((text or "").split("SIMT ERROR: ")[1:2])
    # C++ names as one would say them: no namespaces, template arguments or parameters.
    found = re.sub(r"in kernel (?:void )?(?:\w+::|\(anonymous namespace\)::)*(\w+).*",
                   r"in kernel \1", found)
    found = re.sub(r"__shared__ .*::(\w+), byte", r"__shared__ \1, byte", found)
    return "\n".join(line.rstrip() for line in found.strip().splitlines()[:REPORT_LINES])


def spoken(element):
    """What an exception says, in the form in which it is best read."""
    text = words(element)
    unwritten = re.search(rf"exercise [\w-]+, task \d+: \S+ {UNWRITTEN}", text)
    return unwritten[0] if unwritten else report_of(element.text) or text


def place(element):
    name = pathlib.Path(element.get("filename") or "?").name
    return f"{name}:{element.get('line')}"


def first_failure(case):
    """The first check that failed, as a student should read it."""
    for element in case.iter():
        if element.tag == "Expression" and element.get("success") != "true":
            thrown = element.find("Exception")
            if thrown is None:
                thrown = element.find("FatalErrorCondition")
            was = words(element.find("Expanded"))
            if thrown is not None:
                told = spoken(thrown)
                if UNWRITTEN in told:
                    return told
                if "\n" in told:
                    return f"{place(element)}  {told}"
                was = ("it threw: " if thrown.tag == "Exception" else "it ended by ") + told
            where, gap = place(element), " " * len(place(element))
            original = words(element.find("Original"))
            shown = f"{where}  {element.get('type', 'CHECK')}( {original} )"
            return shown if was == original else f"{shown}\n{gap}  {was}"
        if element.tag in ("Exception", "FatalErrorCondition", "Failure"):
            text = spoken(element)
            return text if UNWRITTEN in text else f"{place(element)}  {text}"
    return ""


def judge(result, root, ended):
    """Fills in a result from the report and from how the process ended."""
    case = root.find(".//TestCase") if root is not None else None
    totals = root.find("OverallResults") if root is not None else None
    overall = case.find("OverallResult") if case is not None else None
    complete = overall is not None and totals is not None
    if complete:
        with contextlib.suppress(TypeError, ValueError):
            result.assertions = int(totals.get("successes")) + int(totals.get("failures"))
        result.message = first_failure(case)
        crashed = case.find(".//FatalErrorCondition") is not None
        if overall.get("success") == "true" and ended.code == 0:
            result.outcome, result.message = PASSED, ""
        else:
            result.how = "crash" if crashed or ended.code > 128 else "check"
        said = re.search(r"^.*Assertion '.*' failed\.", ended.output, re.MULTILINE)
        if crashed and said:
            result.message += "\n" + short_assertion(said[0])
        if result.how != "check" or result.message or result.passed:
            return
    if ended.code > 128:
        result.how = "crash"
        result.message = report_of(ended.output) or \
            f"the program was ended by signal {ended.code - 128}"
    else:
        result.how = "early end"
        result.message = "the program ended in the middle of the test: does your code call exit?"


def short_assertion(line):
    """libstdc++'s message about an index out of bounds, without its function's full name."""
    what = re.search(r"Assertion '(.*)' failed", line)[1]
    if what == "__n < this->size()" or what == "__idx < size()":
        return "an index is past the end of a vector or span"
    return f"the standard library says: '{what}' does not hold"


def private_folder(user):
    """A folder that a test may write to."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lab-test-"))
    if user:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder


def run_test(binary, test, limits=Limits(), seed=STUDENT_SEED, user=None):
    """Runs one test case. A test that needs hardware which is not here is blocked."""
    result = Result(test)
    reason = test.blocked()
    if reason:
        result.outcome, result.message = BLOCKED, reason
        return result
    if "cuda" in test.needs:
        limits = dataclasses.replace(limits, memory=0)  # CUDA reserves more than there is
    folder = private_folder(user)
    try:
        name = re.sub(r'([,\[\]*\\"~])', r"\\\1", test.name)
        report = folder / "report.xml"
        program = pathlib.Path(f"{binary}.trace" if test.trace else binary)
        ended = run_limited([program, name, "-r", "xml", "-o", report, "--rng-seed", seed],
                            folder, limits, user)
        result.seconds = ended.seconds
        if ended.timed_out:
            result.how = "time-out"
            result.message = f"stopped after {limits.seconds:g} s: does a loop never end?"
        else:
            judge(result, read_report(report), ended)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def run_all(binary, tests, limits=Limits(), seed=STUDENT_SEED, user=None):
    """Runs test case after test case; yields each result as it comes."""
    for test in tests:
        yield run_test(binary, test, limits, seed, user)
