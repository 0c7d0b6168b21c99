"""The exercises there are, and the test cases that their sources hold.

Test cases are read from the source of tests.cpp, never from a program: the program contains a
student's code, and what there is to score must not depend on it.
"""
import dataclasses
import os
import pathlib
import re
import shutil

from .problem import ExerciseError

LITERAL = r'(?:"(?:[^"\\]|\\.)*"\s*)+'
TEST_CASE = re.compile(rf"^TEST_CASE\(\s*({LITERAL}),\s*({LITERAL})\)", re.MULTILINE)
WORD = re.compile(r"\d+(-cuda)?")
HINT = re.compile(rf"\bINFO\(\s*({LITERAL})\)")
# What a test may need, by the tag [needs-NAME], and how to see whether it is here.
HARDWARE = {"cuda": lambda: os.path.exists("/dev/nvidiactl") and shutil.which("nvcc"),
            "the emulator": lambda: False}      # of the tests that a GPU is to run: see Exercise.tests
DEVICES = ("simt", "cuda")                  # what can run a CUDA exercise


@dataclasses.dataclass(frozen=True)
class TestCase:
    """One TEST_CASE: a name, and what its tags and its first INFO say."""
    name: str
    points: float
    task: int                # 0 where no task is named
    hint: str
    extra: bool = False      # from a file that students do not have
    needs: tuple = ()
    trace: bool = False      # on the emulator that checks and counts every memory access

    def blocked(self):
        """Why it cannot run here; empty where it can."""
        lacking = [name for name in self.needs if not HARDWARE[name]()]
        return f"needs {', '.join(lacking)}, which is not here" if lacking else ""


def text_of(literals):
    """The text of neighbouring C++ string literals."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', literals)
    return re.sub(r"\\(.)", r"\1", "".join(parts))


def read_tests(text, where, extra=False):
    """The test cases in a C++ source."""
    found = list(TEST_CASE.finditer(text))
    if len(found) != len(re.findall(r"^\s*TEST_CASE\b", text, re.MULTILINE)):
        raise ExerciseError(f"{where}: a TEST_CASE is not of the form TEST_CASE(\"name\", "
                            "\"[task1][1pt]\") at the start of a line")
    tests = []
    for at, match in enumerate(found):
        body = text[match.end():found[at + 1].start() if at + 1 < len(found) else len(text)]
        name, tags = text_of(match[1]), re.findall(r"\[([^\]]+)\]", text_of(match[2]))
        points = [float(tag[:-2]) for tag in tags if re.fullmatch(r"\d+(\.\d+)?pt", tag)]
        tasks = [int(tag[4:]) for tag in tags if re.fullmatch(r"task\d+", tag)]
        needs = tuple(tag[6:] for tag in tags if tag.startswith("needs-"))
        unknown = [name for name in needs if name not in HARDWARE]
        if len(points) != 1 or unknown:
            what = f"needs '{unknown[0]}', which nothing here knows" if unknown else \
                "needs one tag such as [1pt] for its points"
            raise ExerciseError(f"{where}: test case '{name}' {what}")
        hints = [text_of(info[1]) for info in HINT.finditer(body)]
        hint = next((h[5:].strip() for h in hints if h.startswith("hint:")), "")
        tests.append(TestCase(name, points[0], tasks[0] if tasks else 0, hint, extra, needs,
                              "trace" in tags))
    doubled = {test.name for test in tests if [t.name for t in tests].count(test.name) > 1}
    if doubled:
        raise ExerciseError(f"{where}: two test cases are called '{min(doubled)}'")
    return tests


class Exercise:
    """A folder exercises/NN_topic; one that is called NN_topic_cuda is about kernels."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.name
        self.is_cuda = self.name.endswith("_cuda")
        self.number = self.name.split("_")[0] + ("-cuda" if self.is_cuda else "")
        self.tests_file = self.folder / "tests.cpp"

    @property
    def title(self):
        first = (self.folder / "README.md").read_text().splitlines()[0]
        return first.lstrip("# ").split(" {#")[0]

    @property
    def work(self):
        """The file that a student edits."""
        return self.folder / ("exercise.cu" if self.is_cuda else "exercise.hpp")

    @property
    def solution(self):
        return self.folder / "solution" / self.work.name

    @property
    def sources(self):
        """What is compiled: the tests, and for kernels what stands between both."""
        return [self.tests_file, *([self.folder / "bridge.cu"] if self.is_cuda else [])]

    @property
    def headers(self):
        """What the sources include beside a student's file."""
        return [self.folder / "bridge.hpp"] if self.is_cuda else []

    def tests(self, device="simt"):
        """The test cases. On a GPU nothing counts memory accesses: those tests are blocked."""
        tests = read_tests(self.tests_file.read_text(), f"{self.name}/tests.cpp")
        return [on_gpu(test) for test in tests] if device == "cuda" else tests


def on_gpu(test):
    needs = ("cuda", "the emulator") if test.trace else ("cuda",)
    return dataclasses.replace(test, needs=tuple(dict.fromkeys([*test.needs, *needs])))


def all_exercises(root):
    """The exercises of a repository, in order of number."""
    folders = sorted(pathlib.Path(root).glob("exercises/[0-9][0-9]_*"))
    return [Exercise(folder) for folder in folders if (folder / "tests.cpp").exists()]


def find(root, word):
    """The exercise that 2, 02, kv_cache or 02_kv_cache means; 2-cuda: the kernels beside it."""
    there = all_exercises(root)
    for exercise in there:
        topic = exercise.name.split("_", 1)[1]
        if word in (exercise.name, topic) or \
                (WORD.fullmatch(word) and word.zfill(len(exercise.number)) == exercise.number):
            return exercise
    names = ", ".join(exercise.name for exercise in there) or "none"
    raise ExerciseError(f"there is no exercise '{word}'; there are {names}")
