"""Exercises of CUDA kernels: what the emulator finds reaches the student, and ends well."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from support import ROOT, kernels, toolchain

from exercises import catalogue, cuda, grading, reports, running, sandbox
from exercises.problem import ExerciseError

HERE = pathlib.Path(__file__).resolve().parent
FIXTURE = catalogue.Exercise(HERE / "fixture" / "08_reverse_cuda")
SOLUTION = FIXTURE.solution.read_text()
LOAD = "piece[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];"
STORE = "out[blockIdx.x * 64 + threadIdx.x] = piece[63 - threadIdx.x];"
LAUNCH = "launch(reverse_kernel, {dim3(unsigned(n / 64)), dim3(64)}, out, in);"

# What replaces what in the solution, the outcomes of the three tests, what the first failure says.
SUBMISSIONS = {
    "right": ("", "", "✓✓✓", ""),
    "untouched": (SOLUTION, None, "✗✗✗", "exercise 08-cuda, task 1: reverse is not written yet"),
    "no_barrier": ("__syncthreads();", "", "✗✗✗", r"expected"),
    "needless_barrier_in_branch": (
        LOAD, LOAD + "\n if (threadIdx.x < 40) __syncthreads();", "✗✗✗",
        r"barrier divergence\n(.*\n)*.*exercise\.cu:\d+\n(.*\n)*.*exercise\.cu:\d+"),
    "same_result_in_a_race": (
        LOAD, LOAD + "\n if (threadIdx.x > 0) piece[threadIdx.x - 1] = "
        "in[blockIdx.x * 64 + threadIdx.x - 1];", "✓✗✗",
        r"race \(write after write\)\n.*__shared__ piece,.*\n(.*\n)*.*writes at exercise\.cu:\d+\n"
        r".*wrote at exercise\.cu:\d+"),
    "out_of_bounds": (LAUNCH, LAUNCH.replace("n / 64", "n / 64 + 1"), "✗✗✗", r"behind the end"),
    "reads_out_of_bounds": (  # plain: whatever lies there
        LOAD, "if (in[blockIdx.x * 64 + 128] == 2) return;\n" + LOAD, "[✓✗]✗✗",
        r"out-of-bounds global (access|read)\n(.*\n)*.*exercise\.cu:\d+"),
    "far_apart": (
        LOAD, LOAD + "\n if (in[threadIdx.x % 16 * 8] > 2) return;", "✓✓✗",
        r"the budget is 17: 1\.1 times the ideal 16; exercise\.cu:\d+ loads 16 sectors"),
    "spins": (LOAD, LOAD + "\n volatile int go = 0;\n while (!go) {\n }", "✗✗✗",
              r"time limit\n.*still running after \d+ s"),
    "null_pointer": (STORE, "*static_cast<volatile float*>(nullptr) = 1;", "✗✗✗",
                     r"invalid memory access|out-of-bounds"),
    "crashes_on_the_host": (LAUNCH, "*static_cast<volatile float*>(nullptr) = 1;", "!!!",
                            r"SIGSEGV|signal 11"),
    "exits": (LAUNCH, "std::exit(0);", "[?!]{3}", ""),
    "too_many_threads": (LAUNCH, LAUNCH.replace("dim3(64)", "dim3(2048)"), "✗✗✗",
                         r"launch refused\n.*2048"),
    "does_not_compile": (LOAD, "piece[threadIdx.x] = on[0];", "✗✗✗", "it does not compile"),
}


def submission(old, new):
    if new is None:
        return FIXTURE.work.read_text()
    assert not old or SOLUTION.count(old) == 1, old
    return SOLUTION.replace(old, new) if old else SOLUTION


@unittest.skipUnless(sys.platform == "linux", "the limits are Linux's")
class Grading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        toolchain(FIXTURE)
        options = grading.Options(seconds=20, jobs=2, user=sandbox.default_user())
        with tempfile.TemporaryDirectory() as folder, \
                grading.Grader(ROOT, FIXTURE, options) as grader:
            for name, (old, new, *_) in SUBMISSIONS.items():
                path = pathlib.Path(folder, name)
                path.mkdir()
                (path / "exercise.cu").write_text(submission(old, new))
            (pathlib.Path(folder, "wrong_file")).mkdir()
            pathlib.Path(folder, "wrong_file", "exercise.hpp").write_text("")
            grader.prepare(lambda text: None)
            cls.graded = {g.student: g for g in grader.grade_all(folder)}

    def test_every_submission_has_its_outcome_and_is_told_why(self):
        for name, (_, _, marks, said) in SUBMISSIONS.items():
            graded = self.graded[name]
            messages = [result.message for result in graded.results if not result.passed]
            with self.subTest(submission=name):
                self.assertRegex(reports.marks(graded), f"^{marks}$", messages)
                if said:
                    self.assertRegex(messages[0], said)

    def test_a_compiler_error_names_file_and_line(self):
        self.assertRegex(self.graded["does_not_compile"].compiler, r"exercise\.cu:\d+:\d+: error:")

    def test_the_wrong_file(self):
        self.assertIn("exercise.cu is missing; there is exercise.hpp",
                      self.graded["wrong_file"].notes)

    def test_an_innocent_kernel_has_no_note(self):
        for name in ("right", "no_barrier", "spins"):
            self.assertEqual(self.graded[name].notes, [])


class Devices(unittest.TestCase):
    def test_without_a_gpu_everything_is_blocked(self):
        with mock.patch.dict(catalogue.HARDWARE, {"cuda": lambda: False}):
            for test in kernels().tests("cuda"):
                result = running.run_test("/nowhere", test)
                self.assertEqual((result.outcome, result.score), (running.BLOCKED, 0))
                self.assertIn("cuda", result.message)

    def test_a_gpu_does_not_count(self):
        with mock.patch.dict(catalogue.HARDWARE, {"cuda": lambda: True}):
            for test in kernels().tests("cuda"):
                self.assertEqual(bool(test.blocked()), test.trace)

    def test_without_nvcc_it_says_so(self):
        with mock.patch.object(cuda.shutil, "which", lambda name: None), \
                self.assertRaisesRegex(ExerciseError, "no nvcc"):
            with mock.patch("exercises.compiling.compiler", lambda: sys.executable):
                cuda.CudaToolchain(ROOT, "/tmp", "cuda")

    @unittest.skipUnless(cuda.shutil.which("nvcc"), "there is no nvcc here")
    def test_nvcc_takes_every_solution(self):
        chain = toolchain()
        for exercise in catalogue.all_exercises(ROOT):
            if not exercise.is_cuda:
                continue
            with self.subTest(exercise=exercise.name), tempfile.TemporaryDirectory() as folder:
                include = cuda.CudaToolchain(ROOT, chain.folder.parent)
                include.prepare()
                done = subprocess.run(
                    ["nvcc", *(f for f in cuda.NVCC if f != "-arch=native"), "-arch=sm_80", "-x",
                     "cu", "-I", exercise.solution.parent, "-I", include.include, "-I",
                     include.folder, "-c", exercise.folder / "bridge.cu", "-o",
                     pathlib.Path(folder, "bridge.o")], stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)


class Flags(unittest.TestCase):
    def test_are_those_of_the_build(self):
        text = (ROOT / "cmake" / "Cuda.cmake").read_text()
        flags = [*cuda.EMULATED_GCC, *cuda.TRACE, *cuda.TRACE_GCC, *cuda.TRACE_CLANG]
        for flag in flags:
            self.assertIn(flag, text)

    def test_the_emulator_is_divided_as_in_the_build(self):
        text = (ROOT / "kernels" / "simt" / "CMakeLists.txt").read_text()
        named = set(re.findall(r"\b(\w+\.cpp)\b", text))
        both = {flavour: {path.name for path in cuda.emulator_sources(ROOT, flavour)}
                for flavour in ("plain", "trace")}
        self.assertEqual(both["plain"] | both["trace"], named)
        self.assertEqual(both["plain"] - both["trace"], {"no_tracer.cpp"})


if __name__ == "__main__":
    unittest.main()
