"""What the tests of the literate tools share: the tools on the path, and a copy of the fixture."""
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIXTURE = HERE / "fixture"
SKIPPED = 77
sys.path.insert(0, str(ROOT / "tools"))


class FixtureCase(unittest.TestCase):
    """Each test has its own copy of the small course, to break."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "course"
        shutil.copytree(FIXTURE, self.root)
        self.main = self.root / "chapters/02_formula/main.cpp"
        self.captured = self.main.with_name("captured.json")
        self.triangle = self.root / "lib/counting/triangle.hpp"

    def edit(self, path, old, new):
        """Replaces the one place where `path` says `old`; returns its line."""
        text = path.read_text()
        self.assertEqual(text.count(old), 1, f"{old!r} in {path.name}")
        path.write_text(text.replace(old, new))
        return text[:text.index(old)].count("\n") + 1
