"""Grades the example submissions, which are right, wrong, broken or hostile."""
import csv
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

from support import ROOT, toolchain
from test_sandbox import survivors

from exercises import catalogue, grading, reports, running, sandbox
from exercises.problem import ExerciseError

HERE = pathlib.Path(__file__).resolve().parent
FIXTURE = HERE / "fixture" / "07_prefix_sum"
SECONDS = 6.0
ALL, NONE = "✓✓✓✓–✓", "✗✗✗✗–✗"
# The signs of the test cases (see reports.HOW), and what a note to the instructor says. exit()
# runs Catch2's destructors in the middle of a test, which may or may not crash.
EXPECTED = {
    "right": (ALL, ""), "zipped": (ALL, ""), "tarred": (ALL, ""),
    "partial": ("✓✓✗✗–✓", ""), "wrong": ("✗✗✗✗–✗", ""), "untouched": (NONE, ""),
    "own_tests": ("✗✓✗✗–✗", ""),
    "crashes": ("!!✓✓–!", ""), "out_of_bounds": ("!✓✓✓–!", ""),
    "loops": ("∞✓✓✓–∞", ""), "exits": ("✓✓??–✓|✓✓!!–✓", "look at exercise.hpp: exit"),
    "forges": ("????–?", "without making all their checks"),
    "links_report": ("✓✓??–✓", "_exit"),
    "forks": (ALL, "fork"), "escapes": (ALL, "setsid"),
    "floods": ("∞✓✓✓–∞", ""), "fills_disk": ("!✓✓✓–!", "fopen"),
    "eats_memory": ("✗✓✓✓–✗", ""),
    "syntax_error": (NONE, "it does not compile"),
    "missing": (NONE, "there is no exercise.hpp in it"),
    "broken_zip": (NONE, "the archive is broken"), "broken_tar": (NONE, "it cannot be read"),
    "bomb": (NONE, "larger than 1 MiB"),
}


def options(**changes):
    return grading.Options(extra=HERE / "fixture" / "extra_tests.cpp", seconds=SECONDS, jobs=2,
                           user=sandbox.default_user(), **changes)


@unittest.skipUnless(sys.platform == "linux", "the limits are Linux's")
@mock.patch.dict(catalogue.HARDWARE, {"nothing-real": lambda: False})
class Grading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        toolchain()
        cls.out = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.out.cleanup)
        cls.exercise = catalogue.Exercise(FIXTURE)
        with mock.patch.dict(catalogue.HARDWARE, {"nothing-real": lambda: False}), \
                grading.Grader(ROOT, cls.exercise, options()) as grader:
            grader.prepare(lambda text: None)
            cls.graded = {g.student: g for g in grader.grade_all(HERE / "submissions")}
            cls.left = survivors(f"{grader.folder}/work")
            cls.seed, cls.folder = grader.seed, grader.folder
            reports.write(pathlib.Path(cls.out.name), cls.exercise, list(cls.graded.values()),
                          grader.seed, sandbox.described(grader.options.user))

    def test_every_submission_has_its_outcome(self):
        self.assertEqual(set(self.graded), set(EXPECTED))
        self.assertGreaterEqual(len(EXPECTED), 12)
        for name, (signs, note) in EXPECTED.items():
            graded = self.graded[name]
            with self.subTest(submission=name):
                why = [(r.how, r.message) for r in graded.results]
                self.assertIn(reports.marks(graded), signs.split("|"), why)
                self.assertIn(note, "; ".join(graded.notes))

    def test_points(self):
        for name, score in [("right", 6), ("partial", 4), ("untouched", 0), ("loops", 3),
                            ("exits", 4), ("forges", 0)]:
            self.assertEqual((self.graded[name].score, self.graded[name].total), (score, 7))

    def test_nothing_is_left_running_or_on_disk(self):
        self.assertEqual(self.left, [])
        self.assertFalse(self.folder.exists())
        self.assertFalse((self.folder.parent / "evil.hpp").exists())

    def test_a_link_in_place_of_the_report_is_not_read(self):
        for result in self.graded["links_report"].results:
            self.assertNotIn("root:", result.message)

    def test_an_innocent_submission_has_no_note(self):
        for name in ("right", "partial", "wrong", "loops"):
            self.assertEqual(self.graded[name].notes, [])

    def test_csv(self):
        with open(pathlib.Path(self.out.name, "grades.csv"), newline="") as file:
            rows = {row["student"]: row for row in csv.DictReader(file)}
        self.assertEqual(set(rows), set(EXPECTED))
        right = rows["right"]
        self.assertEqual([right[k] for k in ("score", "of", "passed", "failed", "blocked")],
                         ["6", "7", "5", "0", "1"])

    def test_gradescope(self):
        results = json.loads(pathlib.Path(self.out.name, "partial", "results.json").read_text())
        self.assertEqual(sum(test["score"] for test in results["tests"]), 4)
        self.assertEqual(sum(test["max_score"] for test in results["tests"]), 7)
        by_name = {test["name"]: test for test in results["tests"]}
        self.assertEqual(by_name["largest: by hand"]["status"], "failed")
        self.assertIn("-2", by_name["largest: by hand"]["output"])
        blocked = by_name["largest: on hardware that is not here"]
        self.assertNotIn("status", blocked)
        self.assertEqual((blocked["score"], blocked["extra_data"]["outcome"]), (0, "blocked"))
        extra = by_name["sums: random numbers"]
        self.assertEqual((extra["visibility"], extra["output"]), ("after_published", ""))
        self.assertEqual(results["extra_data"]["seed"], self.seed)

    def test_junit(self):
        root = ElementTree.parse(pathlib.Path(self.out.name, "junit.xml")).getroot()
        suites = {suite.get("name"): suite for suite in root}
        self.assertEqual([suites["partial"].get(k) for k in ("tests", "failures", "skipped")],
                         ["6", "2", "1"])
        self.assertEqual(len(suites["partial"].findall(".//failure")), 2)

    def test_student_page(self):
        text = pathlib.Path(self.out.name, "syntax_error", "report.md").read_text()
        self.assertIn("**0 of 7 points**", text)
        self.assertRegex(text, r"exercise\.hpp:\d+:\d+: error:")
        self.assertNotIn(str(self.folder), text)
        text = pathlib.Path(self.out.name, "wrong", "report.md").read_text()
        self.assertIn("hint: 1, 1 + 2, 1 + 2 + 3", text)

    def test_the_seed_is_written_down(self):
        grading_json = json.loads(pathlib.Path(self.out.name, "grading.json").read_text())
        self.assertEqual(grading_json["seed"], self.seed)
        self.assertNotEqual(grading.draw_seed(), grading.draw_seed())


@mock.patch.dict(catalogue.HARDWARE, {"nothing-real": lambda: False})
class Batches(unittest.TestCase):
    def folder(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, data in files.items():
            pathlib.Path(folder.name, name.replace("_dot_", ".")).write_bytes(data)
        return folder.name

    def grader(self, **changes):
        grader = grading.Grader(ROOT, catalogue.Exercise(FIXTURE), grading.Options(**changes))
        self.addCleanup(grader.__exit__)
        return grader

    def test_two_of_one_name_and_none_at_all(self):
        with self.assertRaisesRegex(ExerciseError, "two submissions are called 'ada'"):
            self.grader().grade_all(self.folder(ada_dot_zip=b"", ada_dot_tar=b""))
        with self.assertRaisesRegex(ExerciseError, "no submission"):
            self.grader().grade_all(self.folder())

    def test_extra_tests_need_names_of_their_own(self):
        folder = self.folder(more_dot_cpp=b'TEST_CASE("sums: by hand", "[1pt]") {}')
        with self.assertRaisesRegex(ExerciseError, "is in tests.cpp too"):
            self.grader(extra=pathlib.Path(folder, "more.cpp"))

    def test_a_count_of_checks_that_differs_is_not_a_pass(self):
        grader = self.grader()
        test = grader.tests[0]
        grader.reference = {test.name: running.Result(test, assertions=2)}
        claimed = running.Result(test, outcome=running.PASSED, assertions=1)
        with mock.patch.object(running, "run_test", return_value=claimed):
            result = grader.run("binary", test, grading.Graded("x", [], []))
        self.assertEqual((result.outcome, result.how), (running.FAILED, "checks missing"))


if __name__ == "__main__":
    unittest.main()
