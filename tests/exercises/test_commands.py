"""./lab, ./lab NN, submit, grade and bundle, as students and instructors type them."""
import argparse
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
import zipfile

from support import ROOT, copy_of_the_tree, lab

from exercises import catalogue, mutants, running
from lab import exercises as command, ui


class Student(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = copy_of_the_tree(folder.name)
        cls.exercise = catalogue.find(cls.root, "02")

    def write(self, text):
        self.exercise.work.write_text(text)

    def mutant(self, name):
        mutant = next(m for m in mutants.of(self.exercise) if m.name == name)
        return mutant, mutants.apply(mutant.diff, self.exercise.solution.read_text(), name)

    def test_untouched(self):
        done = lab("02", root=self.root)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        said = "exercise 02, task 1: KvCache::append is not written yet"
        self.assertEqual(done.stdout.count("not written yet"), 1, "only the first explains itself")
        self.assertIn(said, done.stdout)
        self.assertIn("0 of 19 points", done.stdout)
        self.assertIn("stuck? ./lab 02 --hint", done.stdout)

    def test_a_known_mistake_gets_its_own_hint_and_progress_is_kept(self):
        kept = self.exercise.work.read_text()
        self.addCleanup(self.write, kept)
        mutant, text = self.mutant("rope_batch_index")
        self.write(text)
        done = lab("2", "--hint", root=self.root)
        self.assertEqual(done.returncode, 1)
        self.assertIn("hint: " + mutant.hint, done.stdout)
        self.assertRegex(done.stdout, r"tests\.cpp:\d+  CHECK\( same\(roped")
        self.assertRegex(done.stdout, r"element \d+ is .*; expected")
        overview = lab(root=self.root)
        self.assertEqual(overview.returncode, 0)
        self.assertRegex(overview.stdout, r"02 +A KV cache +█+░*  17 of 19 points")
        self.assertRegex(overview.stdout, r"01-cuda  .* not tried yet")
        self.assertIn(f"0 of {len(catalogue.all_exercises(ROOT))} exercises done", overview.stdout)

    def test_solution(self):
        done = lab("02", "--solution", root=self.root)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("19 of 19 points", done.stdout)
        self.assertNotIn("✗", done.stdout)

    def test_compile_error_names_file_and_line(self):
        kept = self.exercise.work.read_text()
        self.addCleanup(self.write, kept)
        self.write(kept.replace("// Your code here.", "retrun length_;", 1))
        done = lab("02", root=self.root)
        self.assertEqual(done.returncode, 1)
        self.assertIn("It does not compile yet", done.stdout)
        self.assertRegex(done.stdout, r"exercises/02_kv_cache/exercise\.hpp:\d+:\d+: error:")
        self.assertLessEqual(len(done.stdout.splitlines()), 16)

    def test_submit(self):
        done = lab("submit", "02", root=self.root)
        self.assertEqual(done.returncode, 0)
        with zipfile.ZipFile(self.root / "submission-02_kv_cache.zip") as archive:
            self.assertEqual(archive.namelist(), ["02_kv_cache/exercise.hpp"])

    def test_mistakes_are_one_sentence(self):
        for arguments, code, words in [
                (["77"], 2, "no exercise '77'; there are 01_naive_decode"),
                (["02", "--help-me"], 2, "unrecognized arguments"),
                (["submit", "9"], 2, "no exercise '9'"),
                (["grade", "02", "nowhere", "--out", "x"], 2, "nowhere is not a folder"),
                (["new", "2", "again"], 1, "02_kv_cache has that number already"),
                (["new", "12", "Bad-Topic"], 1, "is no topic")]:
            with self.subTest(arguments=arguments):
                done = lab(*arguments, root=self.root)
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_grade(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, source in [("ada", self.exercise.solution), ("bob", self.exercise.work)]:
                (root / "in" / name).mkdir(parents=True)
                (root / "in" / name / "exercise.hpp").write_bytes(source.read_bytes())
            done = lab("grade", "02", root / "in", "--out", root / "out", "--seed", 5, "--timeout",
                       60, root=self.root)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"ada +✓{18} +19 of 19\n")
            self.assertRegex(done.stdout, r"bob +✗{18} +0 of 19\n")
            self.assertIn("seed 5", done.stderr)
            for name in ("grades.csv", "junit.xml", "grading.json", "ada/results.json",
                         "bob/report.md"):
                self.assertTrue((root / "out" / name).exists(), name)


class Kernels(unittest.TestCase):
    """An exercise of kernels, as a student types it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = copy_of_the_tree(folder.name)
        cls.exercise = catalogue.find(cls.root, "01-cuda")

    def test_untouched_then_a_known_mistake_then_the_solution(self):
        done = lab("01-cuda", root=self.root)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("exercise 01-cuda, task 1: add is not written yet", done.stdout)
        self.assertIn("0 of 18 points", done.stdout)
        mutant = next(m for m in mutants.of(self.exercise)
                      if m.name == "block_sum_no_second_barrier")
        text = mutants.apply(mutant.diff, self.exercise.solution.read_text(), mutant.name)
        self.exercise.work.write_text(text)
        done = lab("1-cuda", "--hint", root=self.root)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("17 of 18 points", done.stdout)
        self.assertIn("hint: " + mutant.hint, done.stdout)
        self.assertRegex(done.stdout, r"race \(write after read\)")
        self.assertRegex(done.stdout, r"writes at exercise\.cu:\d+")
        self.assertRegex(done.stdout, r"read at exercise\.cu:\d+")
        self.exercise.work.write_bytes(self.exercise.solution.read_bytes())
        done = lab("01-cuda", root=self.root)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("18 of 18 points", done.stdout)
        self.assertIn("./lab submit 01-cuda packs it", done.stdout)
        done = lab("submit", "01-cuda", root=self.root)
        with zipfile.ZipFile(self.root / "submission-01_naive_decode_cuda.zip") as archive:
            self.assertEqual(archive.namelist(), ["01_naive_decode_cuda/exercise.cu"])

    @unittest.skipIf(catalogue.HARDWARE["cuda"](), "there is a GPU here")
    def test_on_a_gpu_that_is_not_here(self):
        done = lab("01-cuda", "--device", "cuda", root=self.root)
        self.assertEqual((done.returncode, done.stderr), (ui.BLOCKED, ""))
        self.assertEqual(done.stdout.count("blocked: needs cuda"), 16)
        done = lab("01", "--device", "cuda", root=self.root)
        self.assertEqual((done.returncode, done.stdout), (ui.USAGE, ""))
        self.assertIn("exercise 01 has no kernels", done.stderr)


class Blocked(unittest.TestCase):
    def conclude(self, *outcomes):
        test = catalogue.TestCase("t", 1.0, 1, "h")
        results = [running.Result(test, outcome=outcome) for outcome in outcomes]
        options = argparse.Namespace(solution=True, hint=False)
        with contextlib.redirect_stdout(io.StringIO()):
            return command.conclude(catalogue.find(ROOT, "02"), results, options)

    def test_exit_codes(self):
        passed, failed, blocked = running.PASSED, running.FAILED, running.BLOCKED
        self.assertEqual(self.conclude(passed, passed), 0)
        self.assertEqual(self.conclude(passed, blocked), ui.BLOCKED)
        self.assertEqual(self.conclude(failed, blocked), ui.FAILED)

    def test_a_blocked_test_never_runs_and_scores_nothing(self):
        test = catalogue.TestCase("t", 1.0, 1, "h", needs=("nothing-real",))
        catalogue.HARDWARE["nothing-real"] = lambda: False
        self.addCleanup(catalogue.HARDWARE.pop, "nothing-real")
        result = running.run_test("/nowhere", test)
        self.assertEqual((result.outcome, result.score), (running.BLOCKED, 0))
        self.assertIn("needs nothing-real", result.message)


if __name__ == "__main__":
    sys.exit(unittest.main())
