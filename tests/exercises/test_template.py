"""./lab new 12 topic, in a copy of the tree: what it adds builds, checks itself and renders."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from support import ROOT, Linked, compiling, copy_of_the_tree, failing, lab, toolchain

from exercises import catalogue, mutants, skeleton
from literate import check, page
from literate.course import Course

NAME = "12_sliding_window"


class NewChapter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = copy_of_the_tree(folder.name)
        cls.done = lab("new", "12", "sliding_window", root=cls.root)

    def test_says_what_it_wrote(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        for line in self.done.stdout.splitlines():
            if line.startswith("wrote "):
                self.assertTrue((self.root / line[6:]).exists(), line)
        for name in (f"chapters/{NAME}/main.cpp", f"exercises/{NAME}/exercise.hpp",
                     "chapters/CMakeLists.txt", "README.md", "docs/course.json"):
            self.assertIn(f"wrote {name}\n", self.done.stdout)

    def test_again_is_refused(self):
        done = lab("new", "12", "other", root=self.root)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("has that number already", done.stderr)

    def test_lists_know_it(self):
        cmake = (self.root / "chapters" / "CMakeLists.txt").read_text()
        self.assertEqual(cmake.count(f"lab_chapter({NAME} LINKS lab::core)"), 1)
        self.assertRegex((self.root / "README.md").read_text(), rf"\| 12 \|.*{NAME}")
        parts = json.loads((self.root / "docs" / "course.json").read_text())["parts"]
        self.assertTrue(any(a <= 12 <= b for a, b in (part["chapters"] for part in parts)))

    def test_its_exercise(self):
        exercise = catalogue.find(self.root, "12")
        tests = exercise.tests()
        solution = exercise.solution.read_text()
        with tempfile.TemporaryDirectory() as folder:
            linked = Linked(toolchain(), exercise, folder)
            binary = pathlib.Path(folder, "tests")
            variants = [(solution, []), (skeleton.of(exercise), [t.name for t in tests])]
            for mutant in mutants.of(exercise):
                variants.append((mutants.apply(mutant.diff, solution, mutant.name),
                                 list(mutant.fails)))
            self.assertEqual(len(variants), 3)
            for text, expected in variants:
                linked.build(text, binary)
                self.assertEqual(failing(binary, tests), expected)
        done = lab("12", "--solution", root=self.root)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_its_page(self):
        course = Course(self.root)
        chapter = course.by_name[NAME]
        text = page.Page(chapter, course.titles, *course.neighbours(chapter)).markdown()
        self.assertIn("Sliding window", text)
        self.assertIn(f"ex{NAME}.html", text)
        self.assertIn(chapter, [c for _, chapters in course.parts() for c in chapters])
        problems = check.check(chapter, set(course.by_name))
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("never captured; run: ./lab capture 12", problems[0])

    def test_its_program(self):
        build = os.environ.get("LAB_BUILD", "")
        library = pathlib.Path(build, "lib", "core", "liblab_core.a")
        if not build or not library.exists():
            self.skipTest("ctest says where the library is; it is not built here")
        with tempfile.TemporaryDirectory() as folder:
            binary = pathlib.Path(folder, "chapter")
            done = compiling.call(
                [compiling.compiler(), "-std=c++20", "-O0", "-Wall", "-Wextra", "-Wshadow",
                 "-Werror", "-Wno-psabi", "-I", pathlib.Path(build, "include"), "-I",
                 ROOT / "kernels" / "include", self.root / "chapters" / NAME / "main.cpp", library,
                 "-lfmt", "-ltbb", "-o", binary], folder)
            self.assertEqual(done.returncode, 0, done.stdout)
            run = subprocess.run([binary, "--self-test"], stdout=subprocess.PIPE, text=True,
                                 check=False)
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertIn("mean(1, 2, 6) = 3.0000", run.stdout)


if __name__ == "__main__":
    unittest.main()
