"""Grades a folder of submissions to one exercise.

Of a submission only its exercise.* is taken; tests, points and the number of checks come from
the reference: the committed tests (and further ones that students do not have) run against the
solution, on inputs from a seed that is drawn for this grading and written down.
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import shutil
import tempfile

from . import catalogue, compiling, cuda, running, sandbox, submissions
from .problem import ExerciseError


@dataclasses.dataclass
class Graded:
    """What one submission came to."""
    student: str
    results: list
    notes: list                     # for the instructor
    compiler: str = ""              # the compiler's first errors
    unreadable: str = ""            # why nothing could be graded

    @property
    def score(self):
        return sum(result.score for result in self.results)

    @property
    def total(self):
        return sum(result.test.points for result in self.results)


@dataclasses.dataclass
class Options:
    extra: pathlib.Path = None      # tests that students do not have
    user: str = None
    seconds: float = 10.0
    jobs: int = 1
    seed: int = 0                   # 0: draw one
    device: str = "simt"            # of an exercise of CUDA kernels


def draw_seed():
    return random.SystemRandom().randrange(2, 1 << 31)


class Grader:
    """One grading: a toolchain, a folder to work in, and the reference results."""

    def __init__(self, root, exercise, options):
        self.root, self.exercise, self.options = pathlib.Path(root), exercise, options
        self.seed = options.seed or draw_seed()
        self.limits = sandbox.Limits(seconds=options.seconds)
        self.tests = exercise.tests(options.device)
        if options.extra:
            where = pathlib.Path(options.extra).name
            extra = catalogue.read_tests(pathlib.Path(options.extra).read_text(), where, True)
            if options.device == "cuda":
                extra = [catalogue.on_gpu(test) for test in extra]
            doubled = {t.name for t in extra} & {t.name for t in self.tests}
            if doubled:
                raise ExerciseError(f"{where}: test case '{min(doubled)}' is in tests.cpp too")
            self.tests += extra
        if not exercise.solution.exists():
            raise ExerciseError(f"{exercise.name} has no solution/{exercise.work.name}, and without it "
                                "there is nothing to compare with: grade in the full course")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lab-grade-"))
        self.folder.chmod(0o755)
        self.reference = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---------------------------------------------------------------- the reference

    def prepare(self, say):
        """Compiles what all share, and runs the tests against the solution."""
        shared = self.root / "build" / "exercises"
        self.toolchain = cuda.toolchain(self.exercise, self.root, shared, self.options.device)
        self.toolchain.prepare(say)
        if self.options.user:   # the other user may not be able to read the repository
            own = self.folder / "shared" / self.toolchain.folder.name
            shutil.copytree(self.toolchain.folder, own)
            self.toolchain.folder = own
            open_up(self.folder / "shared")
        for file in (*self.exercise.sources, *self.exercise.headers):
            shutil.copyfile(file, self.folder / file.name)
        self.sources = [self.folder / file.name for file in self.exercise.sources]
        if self.options.extra:
            self.sources.append(self.folder / "extra_tests.cpp")
            shutil.copyfile(self.options.extra, self.sources[-1])
        open_up(self.folder)
        binary, messages = self.build("reference",
                                      {self.exercise.work.name:
                                       self.exercise.solution.read_bytes()})
        if not binary:
            raise ExerciseError("the solution does not compile:\n" + messages)
        results = list(running.run_all(binary, self.tests, self.limits, self.seed,
                                       self.options.user))
        bad = [r for r in results if r.outcome == running.FAILED]
        if bad:
            raise ExerciseError(f"the solution fails '{bad[0].test.name}' with seed {self.seed}: "
                                f"{bad[0].message}")
        self.reference = {r.test.name: r for r in results}

    def build(self, name, files):
        """@return (the program or None, the compiler's first errors)"""
        folder = self.folder / "work" / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "src").mkdir(parents=True)
        (folder / "bin").mkdir()
        for file, data in files.items():
            (folder / "src" / file).write_bytes(data)
        folder.parent.chmod(0o755)
        open_up(folder)
        if self.options.user:
            shutil.chown(folder / "bin", self.options.user)
        binary = folder / "bin" / "tests"
        worked, said = self.toolchain.build(self.sources, folder / "src", binary,
                                            self.options.user)
        said = compiling.excerpt(said, folder / "src").replace(f"{self.folder}{os.sep}", "")
        return (binary, "") if worked else (None, said)

    # ---------------------------------------------------------------- one submission

    def grade(self, path, number=0):
        """Grades one submission; nothing in it can stop the batch."""
        graded = Graded(submissions.student_name(path), [], [])
        binary, files = None, {}
        try:
            files = submissions.take(path)
        except ExerciseError as problem:
            graded.unreadable = str(problem)
        if not files and not graded.unreadable:
            graded.unreadable = f"there is no {self.exercise.work.name} in it"
        elif self.exercise.work.name not in files and not graded.unreadable:
            graded.unreadable = f"{self.exercise.work.name} is missing; there is " + \
                ", ".join(files)
        if graded.unreadable:
            graded.notes.append(graded.unreadable)
        else:
            for name, data in files.items():
                found = submissions.suspicious(data)
                if found:
                    graded.notes.append(f"look at {name}: {', '.join(found)}")
            binary, graded.compiler = self.build(f"{number:04d}", files)
            if not binary:
                graded.notes.append("it does not compile")
        graded.results = [self.run(binary, test, graded) for test in self.tests]
        short = sum(r.how == "checks missing" for r in graded.results)
        if short:
            graded.notes.append(f"LOOK: {short} tests claim to have passed without making all "
                                "their checks")
        shutil.rmtree(self.folder / "work" / f"{number:04d}", ignore_errors=True)
        return graded

    def run(self, binary, test, graded):
        if not binary and not test.blocked():
            return running.Result(test, how="nothing to run",
                                  message=graded.unreadable or "it does not compile")
        result = running.run_test(binary, test, self.limits, self.seed, self.options.user)
        known = self.reference[test.name].assertions
        if result.passed and result.assertions != known:
            result.outcome, result.how = running.FAILED, "checks missing"
            result.message = f"made {result.assertions} checks; the solution makes {known}"
        return result

    def grade_all(self, folder, done=lambda graded: None):
        """Grades every folder and file in `folder`; calls `done` for each, in their order."""
        paths = sorted(p for p in pathlib.Path(folder).iterdir() if not p.name.startswith("."))
        if not paths:
            raise ExerciseError(f"there is no submission in {folder}")
        names = [submissions.student_name(p) for p in paths]
        doubled = [name for name in names if names.count(name) > 1]
        if doubled:
            raise ExerciseError(f"two submissions are called '{doubled[0]}'; a student hands in "
                                "one")
        out = []
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for graded in pool.map(self.grade, paths, range(len(paths))):
                out.append(graded)
                done(graded)
        return out


def open_up(folder):
    """Lets every user read what a grading made: it holds no secrets but the tests."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
