"""Reads a chapter: its cells, its front matter, and its captured run. The format: __init__.py."""
import dataclasses
import json
import math
import pathlib
import re

from literate import source
from literate.errors import ChapterError

SCHEMA = "decodelab-capture/1"
NUMBER = re.compile(r"\{\{([\w.-]+)(?::([^}]*))?\}\}")
DIRECTIVE = re.compile(r"@([A-Za-z][\w-]*)(?:\s+(.*))?")
FRONT = {"builds-on", "next", "time", "exercise", "summary", "learn", "uses"}
BLOCK = {"summary", "learn", "plot", "figure", "predict", "answer"}  # may go on over more lines
ONE_LINE = {"fold", "output", "show", "expect"}
KNOWN = FRONT | BLOCK | ONE_LINE
SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
IEC = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"), (1, ""))


@dataclasses.dataclass(frozen=True)
class Cell:
    """One piece of a chapter: `kind` is "prose", "code" or the name of a directive."""
    kind: str
    line: int
    text: str


def format_number(value, spec, unit=""):
    """The text of a recorded number. @throws ValueError if the format is not one."""
    if spec in ("si", "iec"):
        scale, prefix = next(((s, p) for s, p in (SI if spec == "si" else IEC) if abs(value) >= s),
                             (1, ""))
        digits = value / scale
        text = f"{digits:.0f}" if abs(digits) >= 100 else f"{digits:.3g}"
        return f"{text} {prefix}{unit}".strip()
    if spec and spec[-1] in "dxXbo":
        value = round(value)
    return format(value, spec or "g")


class Chapter:
    """A parsed chapter. `root` is the repository: the folder above chapters/."""

    def __init__(self, directory, root=None):
        self.dir = pathlib.Path(directory).resolve()
        self.root = pathlib.Path(root).resolve() if root else self.dir.parent.parent
        self.name = self.dir.name
        if not re.fullmatch(r"\d\d_\w+", self.name):
            raise ChapterError(f"{self.dir}: a chapter's folder is called NN_topic, as in 02_kv_cache")
        sources = [p for p in (self.dir / "main.cu", self.dir / "main.cpp") if p.exists()]
        if len(sources) != 1:
            raise ChapterError(f"{self.dir}: expected one of main.cpp and main.cu, found "
                               f"{'both' if sources else 'neither'}")
        self.source = sources[0]
        self.text = self.source.read_text()
        self.title, self.cells = None, []
        self.front = {"learn": [], "uses": [], "builds-on": []}
        self.front_lines = {}
        Parser(self).parse(self.text)
        captured = self.dir / "captured.json"
        self.run = json.loads(captured.read_text()) if captured.exists() else None

    @property
    def number(self):
        return int(self.name[:2])

    def where(self, line):
        """FILE:LINE as seen from the repository."""
        try:
            return f"{self.source.relative_to(self.root)}:{line}"
        except ValueError:
            return f"{self.source}:{line}"

    def error(self, line, message):
        return ChapterError(f"{self.where(line)}: {message}")

    def code(self):
        """The texts of the code cells, in order; together they are the program."""
        return [cell.text for cell in self.cells if cell.kind == "code"]

    # ---------------------------------------------------------------- the files it measures

    def measured_files(self):
        """The library files named by @uses and @show, each with the line that names it."""
        files = {}
        for line, pattern in self.front["uses"]:
            found = sorted(p for p in self.root.glob(pattern) if p.is_file())
            if not found:
                raise self.error(line, f"@uses {pattern}: no such file in the repository")
            for path in found:
                files.setdefault(path, line)
        for cell in self.cells:
            if cell.kind == "show":
                files.setdefault(self.shown(cell)[0], cell.line)
        return files

    def shown(self, cell):
        """What @show FILE:REGION names: (path, code, first line)."""
        name, _, region = cell.text.partition(":")
        if not region:
            raise self.error(cell.line, f"@show needs FILE:REGION, found '{cell.text}'")
        path = self.root / name
        try:
            text, first = source.region(path, region)
        except ChapterError as problem:
            raise self.error(cell.line, f"@show {cell.text}: {problem}") from None
        return path, text, first

    def code_hash(self):
        """One hash for each file the capture depends on, by its path in the repository."""
        prose_free = "\n".join(self.code())
        hashes = {self.source.name: source.code_hash(prose_free)}
        for path in sorted(self.measured_files()):
            hashes[str(path.relative_to(self.root))] = source.code_hash(path.read_text())
        return hashes

    def stale(self):
        """The files whose code changed since the capture."""
        if self.run is None:
            return []
        now, then = self.code_hash(), self.run["code_hash"]
        return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))

    # ---------------------------------------------------------------- the captured run

    def _recorded(self, what, key, line):
        """An entry of the capture; None if there is no capture at all."""
        if self.run is None:
            return None
        table = self.run[{"section": "sections", "number": "metrics", "series": "series"}[what]]
        if key not in table:
            raise self.error(line, f"the captured run has no {what} '{key}'; it has "
                                   f"{', '.join(table) or 'none'}")
        return table[key]

    def section(self, cell):
        lines = self._recorded("section", cell.text, cell.line)
        return None if lines is None else "\n".join(lines)

    def value(self, key, line):
        entry = self._recorded("number", key, line)
        if entry is not None and (entry["value"] is None or not math.isfinite(entry["value"])):
            raise self.error(line, f"the captured number '{key}' is not finite")
        return entry

    def series(self, key, line):
        return self._recorded("series", key, line)

    def fill(self, cell):
        """The cell's text with the recorded numbers in the place of {{KEY:FORMAT}}."""
        def number(match):
            line = cell.line + cell.text[:match.start()].count("\n")
            entry = self.value(match[1], line)
            if entry is None:
                return "?"
            try:
                return format_number(entry["value"], match[2] or "", entry["unit"])
            except ValueError:
                raise self.error(line, f"{match[0]}: '{match[2]}' is no number format") from None
        return NUMBER.sub(number, cell.text)


class Parser:
    """Fills a chapter's cells, title and front matter from its text."""

    def __init__(self, chapter):
        self.chapter = chapter
        self.kind, self.start, self.block = None, 0, []
        self.fence = False      # inside a ``` block of the prose
        self.seen_code = False

    def parse(self, text):
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if stripped.startswith("//!"):
                self.prose(number, stripped[3:].removeprefix(" "))
            elif self.kind == "code":
                self.block.append(line)
            elif stripped:
                self.flush()
                self.begin("code", number)
                self.block.append(line)
                self.seen_code = True
            else:
                self.flush()    # an empty line ends a prose cell
        self.flush()
        if not self.chapter.title:
            raise self.chapter.error(1, "a chapter begins with its title: //! # Title")

    def begin(self, kind, number):
        self.kind, self.start = kind, number

    def prose(self, number, line):
        if self.kind == "code" or self.kind is None:
            self.flush()
            self.begin("prose", number)
        if line.startswith("```"):
            self.fence = not self.fence
        elif not self.fence:
            if match := DIRECTIVE.match(line):
                self.directive(number, match[1], (match[2] or "").strip())
                return
            if not line.strip() and self.kind != "prose":
                self.flush()
                self.begin("prose", number + 1)
                return
            if line.startswith("# "):
                if self.chapter.title:
                    raise self.chapter.error(number, "a second title; sections begin with ##")
                self.chapter.title = line[2:].strip()
                line = ""
        self.block.append(line)

    def directive(self, number, word, rest):
        if word not in KNOWN:
            raise self.chapter.error(number, f"unknown directive @{word}; there are "
                                             f"{', '.join('@' + w for w in sorted(KNOWN))}")
        if not rest:
            raise self.chapter.error(number, f"@{word} needs something after it")
        if word in FRONT and self.seen_code:
            raise self.chapter.error(number, f"@{word} belongs before the first line of code")
        self.flush()
        self.begin(word, number)
        self.block.append(rest)
        if word not in BLOCK:
            self.flush()
            self.begin("prose", number + 1)

    def flush(self):
        lines, first = self.block, self.start
        self.block = []
        while lines and not lines[-1].strip():
            lines.pop()
        while lines and not lines[0].strip():
            lines.pop(0)
            first += 1
        kind, self.kind = self.kind, None
        if not lines:
            return
        if kind in FRONT:
            self.front(kind, first, " ".join(line.strip() for line in lines))
        else:
            self.chapter.cells.append(Cell(kind, first, "\n".join(lines)))

    def front(self, word, line, text):
        front = self.chapter.front
        if word == "learn":
            front["learn"].append(Cell("learn", line, text))
        elif word == "uses":
            front["uses"] += [(line, name) for name in text.split()]
        elif word == "builds-on":
            front["builds-on"] += text.split()
        elif word in front:
            raise self.chapter.error(line, f"a second @{word}")
        else:
            front[word] = text
        self.chapter.front_lines.setdefault(word, line)
