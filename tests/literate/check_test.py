"""Every check finds what it is there for, in its file and line, and nothing else."""
import io
import json
import unittest

from support import ROOT, FixtureCase

import contextlib
import subprocess
import sys

from literate import capture, chapter, check, source
from literate.course import Course
from literate.errors import ChapterError


class CheckTest(FixtureCase):
    def problems(self):
        return check.check_all(Course(self.root))

    def expect(self, line, *words, file="chapters/02_formula/main.cpp"):
        found = self.problems()
        self.assertEqual(len(found), 1, "\n".join(found))
        self.assertTrue(found[0].startswith(f"{file}:{line}: "), found[0])
        for word in words:
            self.assertIn(word, found[0])

    def edit_prose(self, old, new):
        return self.edit(self.main, old, new)

    def edit_capture(self, change):
        run = json.loads(self.captured.read_text())
        change(run)
        self.captured.write_text(json.dumps(run))

    def test_the_fixture_is_right(self):
        self.assertEqual(self.problems(), [])

    def test_exit_code_and_message(self):
        self.edit_prose("@expect ratio > 1000", "@expect ratio > 9000")
        done = subprocess.run([sys.executable, ROOT / "tools/literate", "check", "--root", self.root],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected ratio > 9000, captured 1365", done.stdout)

    # ------------------------------------------------------------ stale

    def test_changed_code(self):
        self.edit_prose("n *= 4", "n *= 2")
        self.expect(1, "main.cpp changed since the capture", "./lab capture 02")

    def test_changed_string(self):
        self.edit_prose('"the formula says "', '"the formula  says "')
        self.expect(1, "main.cpp changed")

    def test_changed_library_file(self):
        self.edit(self.triangle, "even / 2 * odd", "odd * (even / 2)")
        line = self.main.read_text().splitlines().index("//! @uses lib/counting/*.hpp") + 1
        self.expect(line, "lib/counting/triangle.hpp changed")

    def test_prose_comments_and_layout_are_not_code(self):
        self.edit_prose("One of each (and a halving).", "One of each.")
        self.edit(self.triangle, "// one of the two is", "// that one")
        self.edit_prose("  for (int n = 1;", "  for (int n   =   1;  /* from one */")
        self.assertEqual(self.problems(), [])

    def test_never_captured(self):
        self.captured.unlink()
        self.expect(1, "never captured")

    def test_capture_of_another_chapter(self):
        self.edit_capture(lambda run: run.update(chapter="01_sum"))
        self.expect(1, "is not a decodelab-capture/1 of 02_formula")

    # ------------------------------------------------------------ names that are not there

    def test_missing_section(self):
        self.expect(self.edit_prose("@output cost", "@output price"), "no section 'price'", "cost")

    def test_missing_number(self):
        line = self.edit_prose("{{ratio:.0f}}", "{{ration:.0f}}")
        self.expect(line, "no number 'ration'", "terms")

    def test_missing_number_further_down(self):
        line = self.edit_prose("cheaper. It costs", "cheaper, {{nothing}}. It costs")
        self.expect(line, "no number 'nothing'")

    def test_missing_series(self):
        self.expect(self.edit_prose("@plot cost", "@plot costs"), "no series 'costs'")

    def test_wrong_number_format(self):
        self.expect(self.edit_prose("{{ratio:.0f}}", "{{ratio:.0q}}"), "'.0q' is no number format")

    def test_missing_region(self):
        self.expect(self.edit_prose("triangle.hpp:formula", "triangle.hpp:formulas"),
                    "no region 'formulas'", "it has: formula")

    def test_missing_shown_file(self):
        self.expect(self.edit_prose("@show lib/counting/triangle.hpp", "@show lib/counting/square.hpp"),
                    "there is no file square.hpp")

    def test_region_without_end(self):
        self.edit(self.triangle, "  // [endregion]\n", "")
        self.expect(self.main.read_text()[:self.main.read_text().index("@show")].count("\n") + 1,
                    "has no // [endregion]")

    def test_missing_used_file(self):
        self.expect(self.edit_prose("@uses lib/counting/*.hpp", "@uses lib/counting/*.cpp"),
                    "no such file")

    def test_missing_neighbours(self):
        self.expect(self.edit_prose("@builds-on 01_sum", "@builds-on 01_product"),
                    "@builds-on 01_product", "there is no such chapter", "01_sum")

    def test_missing_exercise(self):
        self.expect(self.edit_prose("@exercise 02_formula", "@exercise 02_other"),
                    "no folder exercises/02_other")

    def test_missing_figure(self):
        self.expect(self.edit_prose("@figure pairs", "@figure pears"), "there is no", "pears.js")

    def test_long_figure(self):
        figure = self.root / "chapters/02_formula/figures/pairs.js"
        figure.write_text(figure.read_text() + "//\n" * 100)
        line = self.main.read_text()[:self.main.read_text().index("@figure")].count("\n") + 1
        self.expect(line, "a figure has at most 100")

    def test_figure_without_words(self):
        figure = self.root / "chapters/02_formula/figures/pairs.js"
        figure.write_text("\n" + figure.read_text())
        line = self.main.read_text()[:self.main.read_text().index("@figure")].count("\n") + 1
        self.expect(line, "says in words what the figure shows")

    def test_named_file(self):
        line = self.edit_prose("The even one of", "In `lib/counting/square.hpp` the even one of")
        self.expect(line, "`lib/counting/square.hpp`, which is not there")

    def test_named_file_in_a_document(self):
        line = self.edit(self.root / "docs/words.md", "triangle.hpp", "square.hpp")
        self.expect(line, "which is not there", file="docs/words.md")

    # ------------------------------------------------------------ claims

    def test_false_claims(self):
        line = self.edit_prose("@expect ratio > 1000", "@expect ratio > 1365")
        self.expect(line, "expected ratio > 1365, captured 1365")

    def test_claim_about_another_number(self):
        line = self.edit_prose("@expect ratio < terms", "@expect ratio > terms")
        self.expect(line, "expected ratio > terms (4096), captured 1365")

    def test_claim_about_nothing(self):
        self.expect(self.edit_prose("@expect ratio < terms", "@expect ratio < turns"),
                    "no number 'turns'")

    def test_claim_that_is_none(self):
        self.expect(self.edit_prose("@expect ratio > 1000", "@expect ratio is large"),
                    "needs KEY OP VALUE")

    def test_number_that_is_none(self):
        line = self.edit_prose("@expect ratio > 1000", "@expect bytes != 0")
        self.edit_capture(lambda run: run["metrics"]["bytes"].update(value=None))
        found = self.problems()
        self.assertTrue(any(f":{line}: the captured number 'bytes' is not finite" in p for p in found),
                        found)

    def test_logarithm_of_nothing(self):
        self.edit_capture(lambda run: run["series"]["cost"]["lines"]["formula"].__setitem__(0, 0))
        line = self.main.read_text()[:self.main.read_text().index("@plot")].count("\n") + 1
        self.expect(line, "not positive, on a logarithmic axis")

    def test_ragged_series(self):
        self.edit_capture(lambda run: run["series"]["cost"]["lines"]["formula"].pop())
        line = self.main.read_text()[:self.main.read_text().index("@plot")].count("\n") + 1
        self.expect(line, "has 6 values for 7 places")

    # ------------------------------------------------------------ the format

    def refuse(self, line, *words):
        with self.assertRaises(ChapterError) as raised:
            Course(self.root)
        self.assertTrue(str(raised.exception).startswith(f"chapters/02_formula/main.cpp:{line}: "),
                        str(raised.exception))
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_unknown_directive(self):
        self.refuse(self.edit_prose("@output cost", "@outptu cost"), "unknown directive @outptu",
                    "@output")

    def test_empty_directive(self):
        self.refuse(self.edit_prose("@output cost", "@output"), "@output needs something after it")

    def test_front_matter_after_code(self):
        self.refuse(self.edit_prose("@output cost", "@time 3"), "before the first line of code")

    def test_second_title(self):
        self.refuse(self.edit_prose("//! ## The formula", "//! # The formula"), "a second title")

    def test_second_summary(self):
        self.refuse(self.edit_prose("@time 10", "@summary again"), "a second @summary")

    def test_repeated_heading(self):
        self.expect(self.edit_prose("## What it buys", "## The formula"),
                    "a second section 'The formula'")

    def test_chapter_outside_all_parts(self):
        plan = self.root / "docs/course.json"
        self.edit(plan, "[1, 9]", "[1, 1]")
        with self.assertRaisesRegex(ChapterError, "no part of docs/course.json holds chapter 2"):
            Course(self.root).parts()


class SourceTest(unittest.TestCase):
    def test_code_only(self):
        same = [("int a;  // x\n", "int  a;"), ("f(/* , */ 1)", "f(1)"), ("a\n+b", "a + b")]
        for left, right in same:
            self.assertEqual(source.code_hash(left), source.code_hash(right))
        differ = [('"a // b"', '"a // c"'), ('"a  b"', '"a b"'), ("x = 1'000; // y\nz = '/';", "x = 1'000;"),
                  ('R"(a // b)"', 'R"(a // c)"'), ("'\"' // x\n\"y\"", "'\"' // x\n\"z\""),
                  ('"\\\\" + a', '"\\\\" + b')]
        for left, right in differ:
            self.assertNotEqual(source.code_hash(left), source.code_hash(right), (left, right))

    def test_numbers(self):
        for value, spec, unit, text in ((3.2e6, "si", "B", "3.2 MB"), (3 * 2**20, "iec", "B", "3 MiB"),
                                        (0.00042, "si", "s", "420 µs"), (0, "si", "B", "0 B"),
                                        (1234.5, ".1f", "x", "1234.5"), (5050.0, "d", "", "5050"),
                                        (12345678, ",", "", "12,345,678"), (0.5, ".0%", "", "50%")):
            self.assertEqual(chapter.format_number(value, spec, unit), text)


class CaptureTest(FixtureCase):
    def program(self, text):
        path = self.root / "program"
        path.write_text("#!" + sys.executable + "\nimport json, sys\n"
                        "record = sys.argv[sys.argv.index('--json') + 1]\n" + text)
        path.chmod(0o755)
        return path

    def capture(self, text):
        with contextlib.redirect_stdout(io.StringIO()):
            return capture.capture(Course(self.root).find(["02"])[0], self.program(text))

    RECORD = ("json.dump(dict(schema='decodelab-run/1', chapter='02_formula', device='d', threads=2,"
              "metrics=dict(a=dict(value=1.23456789, unit='s'), b=dict(value=2.0**40, unit='B')),"
              "series={}), open(record, 'w'))\n")

    def test_sections_and_numbers(self):
        self.assertEqual(0, self.capture(
            self.RECORD + "print('before\\n== one ====\\n a  \\n\\nb\\n\\n== two =====\\nc')"))
        run = json.loads(self.captured.read_text())
        self.assertEqual(run["sections"], {"one": [" a", "", "b"], "two": ["c"]})
        self.assertEqual(run["metrics"]["a"]["value"], 1.23457)
        self.assertEqual(run["metrics"]["b"]["value"], 2**40)
        self.assertEqual(run["threads"], 2)
        self.assertEqual(set(run["code_hash"]), {"main.cpp", "lib/counting/triangle.hpp"})

    def test_a_failed_run_leaves_the_capture(self):
        before = self.captured.read_text()
        with self.assertRaisesRegex(ChapterError, "exit 3"):
            self.capture(self.RECORD + "sys.exit(3)")
        self.assertEqual(self.captured.read_text(), before)

    def test_missing_hardware_leaves_the_capture(self):
        before = self.captured.read_text()
        self.assertEqual(77, self.capture("sys.exit(77)"))
        self.assertEqual(self.captured.read_text(), before)

    def test_a_record_of_another_chapter(self):
        with self.assertRaisesRegex(ChapterError, "expected a decodelab-run/1 record of 02_formula"):
            self.capture(self.RECORD.replace("02_formula", "03_other"))

    def test_same_run_same_text(self):
        self.capture(self.RECORD)
        first = self.captured.read_text()
        self.capture(self.RECORD)
        self.assertEqual(self.captured.read_text(), first)


if __name__ == "__main__":
    unittest.main()
