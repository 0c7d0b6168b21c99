"""Every plausible mistake is caught by just the tests it names, the skeleton scores 0, and the
solution everything."""
import pathlib
import tempfile
import unittest

from support import ROOT, Kernels, Linked, failing, toolchain

from exercises import catalogue, mutants, skeleton

AT_LEAST = 5


class Exercises(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def prove(self, exercise):
        tests, solution = exercise.tests(), exercise.solution.read_text()
        names = [test.name for test in tests]
        kind = Kernels if exercise.is_cuda else Linked
        linked = kind(toolchain(exercise), exercise, self.folder)
        binary = self.folder / "tests"

        def failures(text):
            linked.build(text, binary)
            return failing(binary, tests)
        self.assertEqual(failures(solution), [], "the solution")
        self.assertEqual(failures(skeleton.of(exercise)), names, "the untouched skeleton")
        known = mutants.of(exercise)
        self.assertGreaterEqual(len(known), AT_LEAST)
        caught = set()
        for mutant in known:
            with self.subTest(mutant=mutant.name):
                failed = failures(mutants.apply(mutant.diff, solution, mutant.name))
                self.assertTrue(failed, "nothing catches it")
                self.assertEqual(failed, list(mutant.fails))
                caught |= set(failed)
        self.assertEqual(set(names) - caught, set(), "test cases that no mutant needs")


def add_tests():
    """One test for each exercise, so that its name is in the report."""
    for exercise in catalogue.all_exercises(ROOT):
        def test(self, exercise=exercise):
            self.prove(exercise)
        setattr(Exercises, f"test_{exercise.name}", test)


add_tests()

if __name__ == "__main__":
    unittest.main()
