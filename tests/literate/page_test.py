"""Pages, plots and notebooks: well formed, complete, and (the notebook's cells) a program."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

from support import FIXTURE, ROOT, FixtureCase

from literate import header_filter, notebook, page, plot, source
from literate.course import Course

SVG = "{http://www.w3.org/2000/svg}"


def series(lines, x=(1, 10, 100)):
    return {"x_label": "length, tokens", "y_label": "time, ms", "x": list(x), "lines": lines}


class PlotTest(unittest.TestCase):
    def draw(self, lines, flag="", x=(1, 10, 100)):
        self.assertIsNone(plot.check_series(series(lines, x), "x" in flag or flag == "loglog",
                                            "y" in flag or flag == "loglog"))
        return xml.fromstring(plot.svg(series(lines, x), "A <caption> & more", flag, "id"))

    def test_lines(self):
        drawing = self.draw({"a & b": [1, 2, 3], "c": [3, 2, 1]})
        texts = [text.text for text in drawing.iter("text")]
        for label in ("length, tokens", "time, ms", "a & b", "c"):
            self.assertIn(label, texts)
        self.assertEqual(len(list(drawing.iter("polyline"))), 2)
        self.assertEqual(drawing.find("title").text, "A <caption> & more")
        self.assertIn("a & b: 1 at 1, 3 at 100", drawing.find("desc").text)
        self.assertEqual(drawing.get("aria-labelledby"), "id_title id_desc")

    def test_everything_is_inside(self):
        for flag in ("", "loglog", "logx", "logy"):
            for ys in ([1, 2, 3], [5, 5, 5], [1e-6, 1, 1e6], [1e9, 2e9, 3e9]):
                drawing = self.draw({"line": ys}, flag)
                points = [pair.split(",") for pair in drawing.find("polyline").get("points").split()]
                for x, y in points:
                    self.assertTrue(plot.LEFT <= float(x) <= plot.WIDTH, (flag, ys))
                    self.assertTrue(plot.TOP <= float(y) <= plot.HEIGHT - plot.BOTTOM + 0.1, (flag, ys))
                ticks = [t for t in drawing.iter("text") if t.get("class") == "tick"]
                self.assertGreaterEqual(len(ticks), 4, (flag, ys))

    def test_higher_is_higher(self):
        for flag in ("", "loglog"):
            points = self.draw({"line": [1, 2, 4]}, flag).find("polyline").get("points").split()
            heights = [float(pair.split(",")[1]) for pair in points]
            self.assertEqual(heights, sorted(heights, reverse=True))

    def test_gaps_and_single_points(self):
        drawing = self.draw({"roof": [1, 10, 10], "kernel": [None, 5, None], "gap": [1, None, 2]}, "loglog")
        self.assertEqual(len(list(drawing.iter("polyline"))), 2)
        self.assertIn("kernel", [text.text for text in drawing.iter("text")])

    def test_labels_do_not_overlap(self):
        drawing = self.draw({name: [1, 2, 3] for name in "abcdef"})
        heights = sorted(float(t.get("y")) for t in drawing.iter("text") if "name" in t.get("class"))
        self.assertTrue(all(b - a >= 16 for a, b in zip(heights, heights[1:])), heights)

    def test_one_place(self):
        self.draw({"a": [3], "b": [4]}, x=(7,))

    def test_table(self):
        table = xml.fromstring(plot.table(series({"a": [1, None, 3]})))
        self.assertEqual([[cell.text for cell in row] for row in table.iter("tr")][1:],
                         [["1", "1"], ["10", None], ["100", "3"]])

    def test_tick_labels(self):
        for value, text in ((0, "0"), (0.25, "0.25"), (12000, "12k"), (3e6, "3M"), (1e-4, "10⁻⁴"),
                            (2e-5, "2·10⁻⁵"), (5000, "5000")):
            self.assertEqual(plot.short(value), text)


class PageTest(FixtureCase):
    def markdown(self, name="02"):
        course = Course(self.root)
        chapter = course.find([name])[0]
        return page.Page(chapter, course.titles, *course.neighbours(chapter)).markdown()

    def test_what_is_on_it(self):
        text = self.markdown()
        for part in ("# 2 · Adding all at once {#ch02_formula}", "## The formula {#ch02_formula_the_formula}",
                     "const std::int64_t even", 'href="source:lib/counting/triangle.hpp#l00012"',
                     "./lab run 02 --section cost", "4096 terms: 4095 operations, or 3",
                     "1365 times", "(32 KiB, or 32.8 kB)", "It costs $0.",
                     '<a rel="prev" href="ch01_sum.html">', "tell a cost that grows",
                     '<script src="figures/02_formula/pairs.js">', "@this is no directive"):
            self.assertIn(part, text)
        self.assertNotIn("{{terms", text)
        self.assertNotIn("[region", text)

    def test_math(self):
        self.assertEqual(page.doxygen_math("a $x_1$ b `$n` \\$5 $$y\n=z$$"),
                         "a \\f$x_1\\f$ b `$n` $5 \n\\f[y\n=z\\f]\n")

    def test_stale_banner(self):
        self.assertNotIn('class="stale"', self.markdown())
        self.edit(self.main, "n *= 4", "n *= 2")
        self.assertIn('class="stale"', self.markdown())

    def test_without_a_capture(self):
        self.captured.unlink()
        self.assertIn("(not captured yet)", self.markdown())

    def test_chain(self):
        course = Course(self.root)
        self.assertEqual([c.name for c in course.chain()], ["01_sum", "02_formula"])
        first, last = course.chain()
        self.assertEqual(course.neighbours(first)[0], ("index.html", "Start"))
        self.assertEqual(course.neighbours(first)[1][0], "ch02_formula.html")
        self.assertEqual(course.neighbours(last)[1], ("index.html", "Start"))

    def test_map(self):
        drawing = xml.fromstring(Course(self.root).map())
        links = [a.get("href") for a in drawing.iter("a")]
        self.assertEqual(links, ["ch01_sum.html", "ch02_formula.html"])
        self.assertEqual(len([p for p in drawing.iter("path") if p.get("class") == "edge"]), 1)

    def test_documents(self):
        text = page.document("# Words {#old}\n\n[here](a/b.md#The-rest), [x](../lib/y.hpp), [w](https://w.org)\n",
                             "words", {"b.md": "b"})
        self.assertIn("# Words {#words}", text)
        self.assertIn("[here](@ref b_the_rest), x (`lib/y.hpp`), [w](https://w.org)", text)

    def test_header_filter(self):
        text = ("/// @file\n/// What. More.\n#pragma once\n\nnamespace lab {\n\n/// One `a.b` two.\n/// Three.\n"
                "struct S {\n  friend int f(int);\n};\n\n/// @return 1\nint g();\n\n}  // namespace lab\n")
        out = header_filter.filtered("x/lib/model/y.hpp", text)
        self.assertEqual(out.count("\n"), text.count("\n"))
        for part in ("/// @brief What. More.", "namespace lab { /** @addtogroup model */ /** @{ */",
                     "/// @brief One `a.b` two.\n/// Three.", "/** @} */ }  // namespace lab", "/// @return 1\n"):
            self.assertIn(part, out)
        self.assertNotIn("friend", out)
        self.assertEqual(header_filter.group_of("r/kernels/include/lab/kernels/a.hpp"), "kernels")
        self.assertIsNone(header_filter.group_of("r/lib/model/y.cpp"))


class NotebookTest(FixtureCase):
    def setUp(self):
        super().setUp()
        self.chapter = Course(self.root).find(["02"])[0]
        self.parts = self.root / "work" / "parts"

    def written(self):
        """The parts as the notebook's own cells write them, over those of its first cell."""
        notebook.split(self.chapter, self.parts)
        for cell in self.book()["cells"]:
            text = "".join(cell["source"])
            if match := re.match(r"%%writefile (parts/\d\d\.cpp)\n", text):
                (self.parts.parent / match[1]).write_text(text[match.end():] + "\n")

    def book(self):
        return json.loads(notebook.dump(self.chapter, "https://example.org/course.git"))

    def test_structure(self):
        book = self.book()
        self.assertEqual((book["nbformat"], book["nbformat_minor"]), (4, 5))
        self.assertEqual(book["metadata"]["kernelspec"]["name"], "python3")
        ids = [cell["id"] for cell in book["cells"]]
        self.assertEqual(len(ids), len(set(ids)))
        for cell in book["cells"]:
            self.assertRegex(cell["id"], r"^[a-zA-Z0-9_-]{1,64}$")
            needed = {"cell_type", "id", "metadata", "source"}
            if cell["cell_type"] == "code":
                needed |= {"execution_count", "outputs"}
                for output in cell["outputs"]:
                    self.assertEqual(set(output), {"output_type", "name", "text"})
            self.assertEqual(set(cell), needed)
            self.assertTrue(all(isinstance(line, str) for line in cell["source"]))
        text = "".join("".join(cell["source"]) for cell in book["cells"])
        self.assertNotIn("@ref", text)
        self.assertIn("https://example.org/course.git", text)

    def test_python_cells_compile(self):
        for cell in self.book()["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "code" and not text.startswith("%%"):
                compile(re.sub(r"^!.*", "pass", text, flags=re.M), "cell", "exec")

    def test_cells_are_the_program(self):
        self.written()
        joined = notebook.joined(self.parts)
        self.assertEqual(source.code_only(re.sub(r"^#line.*", "", joined, flags=re.M)),
                         source.code_only(self.main.read_text()))

    def test_every_real_chapter_is_its_cells(self):
        for chapter in Course(ROOT).chapters:
            self.assertEqual(source.code_only("\n".join(chapter.code())),
                             source.code_only(chapter.text), chapter.name)

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "needs cmake and ninja")
    def test_edit_and_run(self):
        """Edit a cell, run an output: it builds the chapter's own target from the edited parts."""
        self.written()
        run = [sys.executable, ROOT / "tools/literate", "run", self.chapter.dir, "--parts", self.parts,
               "--section", "cost"]

        def output():
            return subprocess.run(run, capture_output=True, text=True, check=False,
                                  env={**os.environ, "CCACHE_DISABLE": "1"})
        first = output()
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assertIn("4096 terms: 4095 operations, or 3", first.stdout)
        part = next(p for p in sorted(self.parts.glob("*.cpp")) if "n *= 4" in p.read_text())
        part.write_text(part.read_text().replace("n *= 4", "n *= 64"))
        self.assertNotIn("4 terms", output().stdout.replace("64 terms", ""))
        self.assertTrue((self.parts / "results.json").exists())
        part.write_text(part.read_text().replace("n *= 64", "n *= sixty"))
        broken = output()
        self.assertEqual(broken.returncode, 1)
        line = part.read_text()[:part.read_text().index("sixty")].count("\n") + 2
        self.assertIn(f"cell {part.name}:{line}:", broken.stdout)
        self.assertNotIn("FAILED:", broken.stdout)

    def test_figure_for_a_notebook(self):
        done = subprocess.run([sys.executable, ROOT / "tools/literate", "figure", self.chapter.dir, "pairs"],
                              capture_output=True, text=True, check=True)
        for part in ("lab.figure = function", 'lab.figure("pairs"', '"terms": 4096', "svg.moving"):
            self.assertIn(part, done.stdout)


if __name__ == "__main__":
    unittest.main()
