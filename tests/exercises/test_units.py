"""The parts of the exercises' tools that need no compiler, and the one that the others share."""
import json
import pathlib
import tarfile
import tempfile
import unittest
from unittest import mock

from support import ROOT, SHARED, kernels, toolchain

from exercises import bundle, catalogue, compiling, cuda, mutants, running, skeleton, submissions
from exercises.problem import ExerciseError

DIFF = """--- a
+++ b
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


class Shared(unittest.TestCase):
    def test_is_compiled_once(self):
        chain = toolchain(kernels())
        self.assertTrue((chain.folder / "main.o").exists())
        self.assertTrue(chain.header.exists())
        with mock.patch.object(compiling, "call", side_effect=AssertionError("compiled again")), \
                mock.patch.object(cuda, "call", side_effect=AssertionError("compiled again")):
            chain.prepare()
        self.assertTrue(chain.folder.is_relative_to(SHARED.resolve()))

    def test_excerpt_starts_at_the_first_error(self):
        said = "\n".join(["In file included from /x/tests.cpp:1:", "                 from /y:2:",
                          "/x/exercise.hpp:9:3: warning: w", "/x/exercise.hpp:31:5: error: e",
                          *map(str, range(30))])
        lines = compiling.excerpt(said, "/x").splitlines()
        self.assertEqual(lines[0], "exercise.hpp:31:5: error: e")
        self.assertEqual(len(lines), 12)


class Catalogue(unittest.TestCase):
    def test_reads_names_points_tasks_and_hints(self):
        text = ('TEST_CASE("a: \\"b\\"", "[task2][1.5pt]") {\n  INFO("hint: look "\n'
                '       "here");\n}\nTEST_CASE("c",\n          "[2pt][needs-cuda]") {}\n')
        first, second = catalogue.read_tests(text, "t")
        self.assertEqual((first.name, first.points, first.task, first.hint),
                         ('a: "b"', 1.5, 2, "look here"))
        self.assertEqual((second.name, second.needs, second.hint), ("c", ("cuda",), ""))
        self.assertFalse(second.trace)
        traced, = catalogue.read_tests('TEST_CASE("d", "[task1][trace][1pt]") {}', "t")
        self.assertTrue(traced.trace)

    def test_refuses_what_cannot_be_graded(self):
        for text, words in [('TEST_CASE("a", "[task1]") {}', "its points"),
                            ('TEST_CASE("a", "[1pt][2pt]") {}', "its points"),
                            ('TEST_CASE("a") {}', "not of the form"),
                            ('TEST_CASE("a", "[1pt][needs-magic]") {}', "needs 'magic'"),
                            ('TEST_CASE("a", "[1pt]") {}\nTEST_CASE("a", "[1pt]") {}', "two")]:
            with self.subTest(text=text), self.assertRaisesRegex(ExerciseError, words):
                catalogue.read_tests(text, "t.cpp")

    def test_every_exercise_is_complete(self):
        there = catalogue.all_exercises(ROOT)
        self.assertGreaterEqual(len(there), 2)
        for exercise in there:
            with self.subTest(exercise=exercise.name):
                tests, readme = exercise.tests(), (exercise.folder / "README.md").read_text()
                self.assertTrue(all(test.hint and test.task for test in tests))
                self.assertFalse(skeleton.stale(exercise), "run the skeleton generator")
                for task in {test.task for test in tests}:
                    points = sum(t.points for t in tests if t.task == task)
                    self.assertRegex(readme, rf"(?m)^\| {task} \| .* \| {points:g} \|$")
                self.assertIn(exercise.work.relative_to(ROOT).as_posix(), readme)

    def test_words_for_an_exercise(self):
        for word in ("2", "02", "kv_cache", "02_kv_cache"):
            self.assertEqual(catalogue.find(ROOT, word).name, "02_kv_cache")
        for word in ("2-cuda", "02-cuda", "kv_cache_cuda", "02_kv_cache_cuda"):
            self.assertEqual(catalogue.find(ROOT, word).name, "02_kv_cache_cuda")
        with self.assertRaisesRegex(ExerciseError, "no exercise '99'; there are 01_naive"):
            catalogue.find(ROOT, "99")


class Skeleton(unittest.TestCase):
    def test_replaces_the_marked_regions(self):
        text = ("a\n  // BEGIN SOLUTION\n  secret\n  // SKELETON\n  // throw 1;\n"
                "  // END SOLUTION\nb\n")
        self.assertEqual(skeleton.skeleton(text, "f"),
                         "a\n  // Your code here.\n  throw 1;\nb\n")

    def test_marks_must_match(self):
        for text in ("// BEGIN SOLUTION\n", "// END SOLUTION\n",
                     "// BEGIN SOLUTION\n// BEGIN SOLUTION\n",
                     "// BEGIN SOLUTION\nx\n// END SOLUTION\n",
                     "// BEGIN SOLUTION\n// SKELETON\nthrow 1;\n// END SOLUTION\n"):
            with self.subTest(text=text), self.assertRaises(ExerciseError):
                skeleton.skeleton(text, "f")

    def test_no_line_of_a_solution_is_left(self):
        for exercise in catalogue.all_exercises(ROOT):
            self.assertNotIn("SOLUTION", exercise.work.read_text())


class Mutants(unittest.TestCase):
    def test_apply(self):
        self.assertEqual(mutants.apply(DIFF, "one\ntwo\nthree\nfour\n", "m"),
                         "one\n2\nthree\nfour\n")
        for text in ("one\n2\nthree\n", "zero\none\ntwo\nthree\n", "one\n"):
            with self.subTest(text=text), self.assertRaisesRegex(ExerciseError, "mutant m"):
                mutants.apply(DIFF, text, "m")

    def test_header(self):
        mutant = mutants.parse("hint: h\nfails: a: b\nfails: c\n" + DIFF, "m")
        self.assertEqual((mutant.hint, mutant.fails), ("h", ("a: b", "c")))
        for text in (DIFF, "hint: h\n", "hint: h\nother: x\n" + DIFF):
            with self.assertRaises(ExerciseError):
                mutants.parse(text, "m")

    def test_suspects_fail_the_same_tests_of_the_task(self):
        one = mutants.Mutant("one", "h", ("a", "b"))
        two = mutants.Mutant("two", "h", ("a", "z"))
        self.assertEqual(mutants.suspects([one, two], ["a", "b"], ["a", "b", "c"]), [one])
        self.assertEqual(mutants.suspects([one, two], ["a"], ["a", "c"]), [one, two])
        self.assertEqual(mutants.suspects([one], [], ["a", "b"]), [])


class Submissions(unittest.TestCase):
    def test_names(self):
        for name, student in [("ada.zip", "ada"), ("b.c.tar.gz", "b.c"), ("eve.tgz", "eve")]:
            self.assertEqual(submissions.student_name(pathlib.Path(name)), student)

    def test_the_file_nearest_the_top_counts_and_links_do_not(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a" / "b").mkdir(parents=True)
            (root / "a" / "b" / "exercise.hpp").write_text("deep")
            (root / "a" / "exercise.hpp").write_text("shallow")
            (root / "exercise.hpp").symlink_to("/etc/passwd")
            self.assertEqual(submissions.take(root), {"exercise.hpp": b"shallow"})

    def test_only_regular_members_of_a_tar(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.tar")
            with tarfile.open(path, "w") as archive:
                link = tarfile.TarInfo("exercise.hpp")
                link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(link)
            self.assertEqual(submissions.take(path), {})

    def test_suspicious_words(self):
        found = submissions.suspicious(b"#include <unistd.h>\n#define private public\n_exit(0);"
                                       b" fork(); int exiting; // forks")
        self.assertEqual(found, ["#define private", "#include <unistd", "_exit", "fork"])
        for exercise in catalogue.all_exercises(ROOT):
            self.assertEqual(submissions.suspicious(exercise.solution.read_bytes()), [])


class Reports(unittest.TestCase):
    def test_the_emulators_first_finding_without_long_names(self):
        said = ("kernel launch: unspecified launch failure\nSIMT ERROR: race (write after write)\n"
                "  __shared__ void a::f<b::(anonymous namespace)::S>(float)::partial, byte 0 of 8\n"
                "  in kernel void a::g_kernel<b::(anonymous namespace)::S>(float*, b::S)\n"
                "SIMT ERROR: another\n")
        self.assertEqual(running.report_of(said), "race (write after write)\n  __shared__ partial, "
                         "byte 0 of 8\n  in kernel g_kernel")
        self.assertEqual(running.report_of("std::bad_alloc"), "")
        self.assertEqual(running.report_of(None), "")

    def test_only_plain_complete_xml_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "report.xml")
            self.assertIsNone(running.read_report(path))
            path.write_text("<Catch><a/>")
            self.assertIsNone(running.read_report(path))
            path.write_text('<!DOCTYPE a [<!ENTITY b "c">]><Catch>&b;</Catch>')
            self.assertIsNone(running.read_report(path))
            path.write_text("<Catch/>")
            self.assertEqual(running.read_report(path).tag, "Catch")
            link = pathlib.Path(folder, "link.xml")
            link.symlink_to(path)
            self.assertIsNone(running.read_report(link))


class Bundle(unittest.TestCase):
    def test_has_no_solutions_but_their_hints(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "b.tar.gz")
            bundle.write(ROOT, out)
            with tarfile.open(out) as archive:
                names = archive.getnames()
                hints = json.load(archive.extractfile(
                    "decodelab/exercises/02_kv_cache/hints.json"))
                work = archive.extractfile("decodelab/exercises/02_kv_cache/exercise.hpp").read()
            for name in names:
                self.assertNotRegex(name, r"solution/|mutants/|submissions/|/build/|\.git/")
            for name in ("lab", "README.md", "exercises/02_kv_cache/tests.cpp",
                         "exercises/support/testing.hpp", "tests/exercises/CMakeLists.txt"):
                self.assertIn(f"decodelab/{name}", names)
            self.assertGreaterEqual(len(hints), 5)
            self.assertNotIn("diff", hints[0])
            self.assertEqual(work.decode(), skeleton.of(catalogue.find(ROOT, "02")))


if __name__ == "__main__":
    unittest.main()
