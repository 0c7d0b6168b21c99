"""The notebook of a chapter: nbformat 4.5, Python kernel, each C++ cell a file in parts/.

Every output cell builds the chapter's own CMake target from the (perhaps edited) parts, so any
cell may be changed and any output run again, in any order."""
import json
import os
import pathlib
import re
import subprocess
import textwrap

from literate import figure, page, plot
from literate.capture import split_sections
from literate.errors import ChapterError

LINK = re.compile(r"\[([^\]]+)\]\((?:@ref [^)]*|[^)#:]*\.md[^)]*)\)")   # leads nowhere from here
BUILD = "build/notebook"

SETUP = '''\
# Run this cell first: it finds the course (or, on Colab, fetches it) and takes this chapter from it.
import json, os, pathlib, subprocess
REPOSITORY = os.environ.get("LAB_REPOSITORY", "{repository}")
here = pathlib.Path.cwd()
places = [p for p in (here, *here.parents, here / "decodelab") if (p / "tools/literate").is_dir()]
if places:
    COURSE = places[0]
else:
    assert REPOSITORY, "put the address of the course's git repository into REPOSITORY above"
    subprocess.run(["git", "clone", "--depth", "1", REPOSITORY, "decodelab"], check=True)
    COURSE = here / "decodelab"
if os.path.isdir("/content"):                       # Colab: a bare Ubuntu
    subprocess.run(["python3", str(COURSE / "lab"), "install", "build"], check=True)
CHAPTER, LITERATE = COURSE / "chapters/{name}", f"python3 '{{COURSE}}/tools/literate'"
!$LITERATE split "$CHAPTER" --into parts'''

PLOT = '''\
import matplotlib.pyplot as plt
record = "parts/results.json" if os.path.exists("parts/results.json") else CHAPTER / "captured.json"
s = json.load(open(record))["series"][{key!r}]
for name, y in s["lines"].items():
    plt.plot(s["x"], y, "o-", label=name)
plt.xlabel(s["x_label"]); plt.ylabel(s["y_label"]); {scales}plt.legend(); plt.show()'''

FIGURE = '''\
from IPython.display import HTML
HTML(subprocess.run(["python3", str(COURSE / "tools/literate"), "figure", str(CHAPTER), {name!r},
                     "--parts", "parts"], capture_output=True, text=True, check=True).stdout)'''


class Notebook:
    """Collects the cells of one chapter's notebook."""

    def __init__(self, chapter, repository):
        self.chapter, self.repository = chapter, repository
        self.cells = []
        self.part = 0           # the number of the next code cell's file
        self.folded = False

    def add(self, kind, text, outputs=None, **metadata):
        cell = {"cell_type": kind, "id": f"cell-{len(self.cells):03d}", "metadata": metadata,
                "source": text.splitlines(keepends=True)}
        if kind == "code":
            cell.update(execution_count=None, outputs=outputs or [])
        self.cells.append(cell)

    def build(self):
        chapter = self.chapter
        self.add("markdown", f"# {chapter.number} · {chapter.title}\n\nThe program of this chapter is "
                             "spread over the cells below. **Edit any of them** and run it, which "
                             "saves it; then run an output cell: it compiles all the cells together "
                             "and shows the part of the output that belongs there.")
        self.add("code", SETUP.format(repository=self.repository, name=chapter.name))
        objectives = "".join(f"\n- {self.words(cell)}" for cell in chapter.front["learn"])
        for cell in chapter.cells:
            if objectives and cell.kind != "prose":
                self.add("markdown", "**You will learn to**\n" + objectives)
                objectives = ""
            getattr(self, cell.kind)(cell)
        accelerator = {"accelerator": "GPU"} if chapter.source.suffix == ".cu" else {}
        return {"nbformat": 4, "nbformat_minor": 5, "cells": self.cells,
                "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3",
                                            "language": "python"},
                             "language_info": {"name": "python"}, **accelerator}}

    def words(self, cell):
        return LINK.sub(r"\1", self.chapter.fill(cell))

    def prose(self, cell):
        self.add("markdown", self.words(cell))

    def fold(self, cell):
        self.folded = True

    def code(self, cell):
        part, self.part = self.part, self.part + 1
        folded, self.folded = self.folded or page.MAIN.fullmatch(cell.text), False
        if page.CLOSING.fullmatch(cell.text):
            return              # `split` has written it, and nobody edits it
        metadata = {"jupyter": {"source_hidden": True}} if folded else {}
        self.add("code", f"%%writefile parts/{part:02d}.cpp\n{cell.text}", **metadata)

    def output(self, cell):
        shown = self.chapter.section(cell)
        outputs = [] if shown is None else [{"output_type": "stream", "name": "stdout",
                                             "text": (shown + "\n").splitlines(keepends=True)}]
        self.add("code", f'!$LITERATE run "$CHAPTER" --parts parts --section {cell.text}', outputs)

    def plot(self, cell):
        key, flag, caption = plot.parse(cell.text)
        scales = "".join(f'plt.{axis}scale("log"); ' for axis in "xy" if flag in ("loglog", "log" + axis))
        self.add("code", PLOT.format(key=key, scales=scales))
        self.add("markdown", f"*{caption}*")

    def figure(self, cell):
        name, caption, description, _ = figure.load(self.chapter, cell)
        self.add("code", FIGURE.format(name=name))
        self.add("markdown", f"*{caption}* {description}")

    def show(self, cell):
        path, code, _ = self.chapter.shown(cell)
        self.add("markdown", f"`{path.relative_to(self.chapter.root)}`\n\n```cpp\n"
                             f"{textwrap.dedent(code)}\n```")

    def predict(self, cell):
        self.add("markdown", "> **Predict.** " + self.words(cell).replace("\n", "\n> "))

    def answer(self, cell):
        self.add("markdown", f"<details><summary>Answer</summary>\n\n{self.words(cell)}\n\n</details>")

    def expect(self, cell):
        """A claim is for `check`, not for the reader."""


def split(chapter, directory):
    """Writes each code cell to DIRECTORY/NN.cpp."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("[0-9][0-9].cpp"):
        old.unlink()
    for i, text in enumerate(chapter.code()):
        (directory / f"{i:02d}.cpp").write_text(text + "\n")
    print(f"{len(chapter.code())} cells of {chapter.name} in {directory}/")


def joined(directory):
    """The program made of the parts; compilers call line 3 of the part 05.cpp `cell 05.cpp:3`.

    The cell's first line is the notebook's %%writefile line, so the part begins in line 2."""
    parts = sorted(directory.glob("[0-9][0-9].cpp"))
    if not parts:
        raise ChapterError(f"{directory}: no parts here; run the notebook's first cell")
    return "".join(f'#line 2 "cell {p.name}"\n{p.read_text()}' for p in parts)


def build_target(chapter, source):
    """Builds the chapter's own target from `source` in build/notebook: the program, or None."""
    build = chapter.root / BUILD
    log = []
    if not (build / "CMakeCache.txt").exists():
        print("building the course's libraries, once: this takes a minute or two ...", flush=True)
    ninja = [] if (build / "CMakeCache.txt").exists() else ["-G", "Ninja"]
    steps = (["cmake", "-S", str(chapter.root), "-B", str(build), *ninja, "-DLAB_BUILD_TESTS=OFF",
              "-DLAB_BUILD_TOOLS=OFF", f"-DLAB_SOURCE_{chapter.name}={source}"],
             ["cmake", "--build", str(build), "--target", f"chapter_{chapter.name}"])
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "NINJA_STATUS": ""}, check=False)
        log.append(done.stdout)
        if done.returncode:
            noise = re.compile(r"^(FAILED: |ninja: |/\S+/(?:c\+\+|g\+\+|clang\+\+|nvcc)\b|\[\d).*\n", re.M)
            print(noise.sub("", log[-1]).rstrip())
            return None
    return build / "chapters" / chapter.name / chapter.name


def run_parts(chapter, directory, section):
    """Builds the chapter from its parts and prints one section; the record is results.json."""
    source = (directory / f"program{chapter.source.suffix}").resolve()
    text = joined(directory)
    if not source.exists() or source.read_text() != text:
        source.write_text(text)         # an unchanged file keeps its date: nothing to build
    program = build_target(chapter, source)
    if program is None:
        return 1
    record = (directory / "results.json").resolve()
    done = subprocess.run([str(program), "--json", str(record)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, cwd=chapter.root, check=False)
    lines = split_sections(done.stdout).get(section)
    print("\n".join(lines) if lines is not None and not done.returncode else done.stdout)
    return done.returncode


def results(directory):
    """The record of the last run of the parts, or None."""
    record = pathlib.Path(directory) / "results.json"
    return json.loads(record.read_text()) if record.exists() else None


def dump(chapter, repository):
    """The notebook file's text."""
    return json.dumps(Notebook(chapter, repository).build(), indent=1, ensure_ascii=False) + "\n"
