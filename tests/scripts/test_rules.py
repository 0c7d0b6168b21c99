"""Rules about the sources as text: include direction, banned words, commands in the prose."""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import include_direction  # noqa: E402
from exercises import catalogue  # noqa: E402
from lab import chapters, commands, models  # noqa: E402

PROSE = ("README.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/instructors.md")
BANNED = re.compile("hidden", re.IGNORECASE)
# Names in other projects' configuration files: allowed in string literals, not as identifiers.
FOREIGN = re.compile(r"\b(hidden_size|num_hidden_layers|hidden_act)\b")
STRING = re.compile(r'"[^"\n]*"')


def banned_words(text):
    return BANNED.findall(STRING.sub(lambda literal: FOREIGN.sub("", literal[0]), text))


class IncludeDirection(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return include_direction.violations(root)

    def test_this_repository(self):
        self.assertEqual(include_direction.violations(ROOT), [])

    def test_to_the_right_is_fine(self):
        self.assertEqual(self.check({
            "chapters/01_a/main.cpp": '#include "lab/kv_cache/cache.hpp"\n#include "own.hpp"\n',
            "lib/kv_cache/cache.hpp": '#include "lab/model/a.hpp"\n#include "lab/decode/b.hpp"',
            "lib/decode/b.hpp": '#include "lab/model/a.hpp"\n',
            "lib/model/a.hpp": '#include "lab/kernels/op.hpp"\n#include "lab/core/v.hpp"\n',
            "kernels/include/lab/kernels/op.hpp": '#include "lab/core/v.hpp"\n',
            "tests/unit/t.cpp": '#include "../../chapters/01_a/own.hpp"\n'}), [])

    def test_to_the_left_is_found(self):
        for includer, name in [
                ("lib/core/v.hpp", "lab/kernels/op.hpp"),
                ("kernels/cpu/op.cpp", "lab/model/a.hpp"),
                ("kernels/cpu/op.cpp", "../../lib/model/a.hpp"),
                ("lib/model/a.cpp", "lab/decode/b.hpp"),
                ("lib/decode/b.cpp", "lab/kv_cache/cache.hpp"),
                ("lib/kv_cache/c.cpp", "../../chapters/01_a/own.hpp"),
                ("tools/decodelab/main.cpp", "../../chapters/01_a/own.hpp"),
                ("chapters/02_b/main.cpp", "../01_a/own.hpp")]:
            with self.subTest(includer=includer, name=name):
                found = self.check({includer: f'int x;\n  # include "{name}"\n'})
                self.assertEqual(found, [f'{includer}: "{name}"'])


class Words(unittest.TestCase):
    def test_no_banned_word_in_the_sources(self):
        for folder in ("lib", "kernels"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in include_direction.SOURCES:
                    with self.subTest(path=path.relative_to(ROOT)):
                        self.assertEqual(banned_words(path.read_text()), [])

    def test_the_check_itself(self):
        self.assertEqual(banned_words('config.at("hidden_size") // of "num_hidden_layers"'), [])
        self.assertEqual(banned_words("int hidden_dim; // Hidden"), ["hidden", "Hidden"])
        self.assertEqual(banned_words('"hidden_size={} is", hidden_size'), ["hidden"])
        self.assertEqual(banned_words('"the hidden width"'), ["hidden"])


class Prose(unittest.TestCase):
    """What the prose tells people to type exists."""

    def text(self, name):
        return (ROOT / name).read_text()

    def test_commands_exist(self):
        for name in PROSE:
            for command in re.findall(r"\./lab +([a-z_]+|\d+)", self.text(name)):
                with self.subTest(file=name, command=command):
                    if command.isdecimal():
                        self.assertTrue(catalogue.find(ROOT, command).work.exists())
                    else:
                        self.assertIn(command, commands.COMMANDS)

    def test_models_exist(self):
        known = {*models.BUILT_IN, *models.DOWNLOADS}
        for model in re.findall(r"\./lab model +([a-z]\w*)", self.text("README.md")):
            self.assertIn(model, known)

    def test_every_chapter_has_its_row(self):
        for name in chapters.names():
            self.assertRegex(self.text("README.md"), rf"\| \[?{name[:2]}\b.*{name}")

    def test_links_lead_somewhere(self):
        for name in PROSE:
            here = (ROOT / name).parent
            for link in re.findall(r"\]\(([^)#:]+)\)", self.text(name)):
                with self.subTest(file=name, link=link):
                    self.assertTrue((here / link).exists())

    def test_readme_has_a_place_for_output(self):
        text = self.text("README.md")
        self.assertEqual(text.count("<!-- run:begin -->"), 1)
        self.assertLess(text.index("<!-- run:begin -->"), text.index("<!-- run:end -->"))


if __name__ == "__main__":
    unittest.main()
