"""What the tests of the exercises share."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from exercises import catalogue, compiling, cuda, running, sandbox  # noqa: E402

SHARED = ROOT / "build" / "exercises"


def toolchain(exercise=None):
    """The compiler, with what all exercises share compiled; what this one needs, if named."""
    chain = cuda.toolchain(exercise, ROOT, SHARED) if exercise else \
        compiling.Toolchain(ROOT, SHARED)
    chain.prepare()
    return chain


def kernels():
    """The first of the exercises with kernels."""
    return next(x for x in catalogue.all_exercises(ROOT) if x.is_cuda)


class Kernels:
    """An exercise of kernels, to be built with one exercise.cu after another."""

    def __init__(self, chain, exercise, folder):
        self.chain, self.exercise, self.folder = chain, exercise, pathlib.Path(folder)

    def build(self, text, binary):
        own = self.folder / "variant"
        own.mkdir(exist_ok=True)
        (own / "exercise.cu").write_text(text)
        worked, said = self.chain.build(self.exercise.sources, own, binary)
        if not worked:
            raise AssertionError(said[:4000])


class Linked:
    """An exercise's tests compiled once, to be linked with one exercise.hpp after another.

    Without optimisation the functions of exercise.hpp are calls to weak symbols, and a linker
    takes the first definition that it meets. So a variant of the header costs the compilation
    of its functions, not of the tests. It must leave the layout of classes as it is.
    """

    def __init__(self, chain, exercise, folder):
        self.chain, self.folder = chain, pathlib.Path(folder)
        self.functions = re.findall(r"task \d+: ([\w:]+) is not written",
                                    exercise.solution.read_text())
        self.compile(exercise.tests_file, exercise.solution.parent, "tests.o")

    def compile(self, source, include, name):
        command = self.chain.command([source], include, self.folder / name)
        linked = [self.chain.folder / "main.o", *self.chain.libraries]
        self.must([*(part for part in command if part not in linked), "-c"])

    def must(self, command):
        done = compiling.call(command, self.folder)
        if done.returncode != 0:
            raise AssertionError(done.stdout[:4000])

    def build(self, text, binary):
        """Builds the tests against a header's text."""
        own = self.folder / "variant"
        own.mkdir(exist_ok=True)
        (own / "exercise.hpp").write_text(text)
        kept = [f"[[gnu::used]] const auto kept{i} = &exercise::{name};"
                for i, name in enumerate(self.functions)]
        (own / "variant.cpp").write_text("\n".join(['#include "exercise.hpp"', *kept, ""]))
        self.compile(own / "variant.cpp", own, "variant.o")
        self.must([self.chain.cxx, self.folder / "variant.o", self.folder / "tests.o",
                   self.chain.folder / "main.o", *self.chain.libraries, "-o", binary])


COPIED = ("lab", "packages.txt", "CMakePresets.json", "README.md", "CMakeLists.txt", "tools",
          "exercises", "chapters", "docs", "lib/core", "kernels/simt", "kernels/cuda",
          "kernels/include")


def copy_of_the_tree(folder):
    """The parts of the repository that ./lab needs, with what is compiled once shared."""
    folder = pathlib.Path(folder)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(
                "__pycache__", "measurements"))
        else:
            shutil.copy(ROOT / name, folder / name)
    own = folder / "build" / "exercises"
    own.mkdir(parents=True)
    shared = toolchain(kernels()).folder
    (own / shared.name).symlink_to(shared)
    return folder


def lab(*arguments, root=ROOT):
    """Runs ./lab as a user does."""
    return subprocess.run([sys.executable, "-B", root / "lab", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "LAB_SKIP_PACKAGES": "1"}, check=False)


def failing(binary, tests):
    """The names of the test cases that fail: in one process, or one each where that crashes.

    Traced ones run in a process each: the emulator reports the same race only once.
    """
    traced = [test for test in tests if test.trace]
    if traced:
        plain = failing(binary, [test for test in tests if not test.trace])
        ended = running.run_all(binary, traced, sandbox.Limits(seconds=60))
        bad = {*plain, *(result.test.name for result in ended if not result.passed)}
        return [test.name for test in tests if test.name in bad]
    names = ",".join(re.sub(r'([,\[\]*\\"~])', r"\\\1", test.name) for test in tests)
    done = subprocess.run([binary, names, "-r", "xml"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=120, check=False)
    try:
        cases = ElementTree.fromstring(done.stdout.decode(errors="replace")).iter("TestCase")
        passed = {case.get("name"): case.find("OverallResult").get("success") == "true"
                  for case in cases}
    except (ElementTree.ParseError, AttributeError):
        passed = {}
    if set(passed) != {test.name for test in tests}:
        results = running.run_all(binary, tests, sandbox.Limits(seconds=60))
        passed = {result.test.name: result.passed for result in results}
    return [test.name for test in tests if not passed[test.name]]
