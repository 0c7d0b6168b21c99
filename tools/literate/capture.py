"""Runs a chapter and keeps what it printed and measured, in the chapter's captured.json."""
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from literate.chapter import SCHEMA
from literate.errors import ChapterError

RUN_SCHEMA = "decodelab-run/1"
SECTION = re.compile(r"^== (\S+) =+$", re.M)
NEEDS_HARDWARE = 77


def split_sections(stdout):
    """What was printed under each header `== name ====`, as lists of lines, by name."""
    pieces = SECTION.split(stdout)          # [before, name, text, name, text, ...]
    return {name: [line.rstrip() for line in text.strip("\n").split("\n")]
            for name, text in zip(pieces[1::2], pieces[2::2])}


def tidy(value):
    """Whole numbers as such, others to six significant digits: enough to print and to plot."""
    if isinstance(value, dict):
        return {key: tidy(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [tidy(entry) for entry in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.6g}")
    return value


def dump(capture):
    """JSON with the numbers of a list on one line, so that a diff shows what changed."""
    text = json.dumps(capture, indent=1, ensure_ascii=False)
    numbers = re.compile(r"\[\s*((?:-?[\d.eE+-]+|null)(?:,\s*(?:-?[\d.eE+-]+|null))*)\s*\]")
    return numbers.sub(lambda m: "[" + re.sub(r",\s*", ", ", m[1]) + "]", text) + "\n"


def run_binary(binary, arguments, root):
    """Runs the chapter, showing what it prints as it comes: (exit code, stdout)."""
    lines = []
    with subprocess.Popen([str(binary), *arguments], stdout=subprocess.PIPE, text=True,
                          encoding="utf-8", cwd=root) as process:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    return process.returncode, "".join(lines)


def capture(chapter, binary, threads=0):
    """Writes captured.json; returns the chapter's exit code when it needs hardware not here.

    @throws ChapterError if the run fails, or if it is not a run of this chapter."""
    binary = pathlib.Path(binary).resolve()
    if not binary.is_file():
        raise ChapterError(f"{chapter.where(1)}: no program {binary}; build the chapter first")
    with tempfile.TemporaryDirectory() as scratch:
        record = pathlib.Path(scratch) / "run.json"
        arguments = ["--json", str(record)] + (["--threads", str(threads)] if threads else [])
        code, stdout = run_binary(binary, arguments, chapter.root)
        if code == NEEDS_HARDWARE:
            return code
        if code:
            raise ChapterError(f"{chapter.where(1)}: the chapter's run failed (exit {code}); "
                               f"captured.json is as it was")
        run = json.loads(record.read_text())
    if run.get("schema") != RUN_SCHEMA or run.get("chapter") != chapter.name:
        raise ChapterError(f"{chapter.where(1)}: expected a {RUN_SCHEMA} record of {chapter.name}, "
                           f"found {run.get('schema')} of {run.get('chapter')}")
    kept = {
        "schema": SCHEMA,
        "chapter": chapter.name,
        "model": run.get("model"),
        "device": run["device"],
        "threads": run.get("threads") or threads or None,
        "date": datetime.date.today().isoformat(),
        "code_hash": chapter.code_hash(),
        "sections": split_sections(stdout),
        "metrics": tidy(run["metrics"]),
        "series": tidy(run["series"]),
    }
    (chapter.dir / "captured.json").write_text(dump(kept), encoding="utf-8")
    print(f"\nchapters/{chapter.name}/captured.json: {len(kept['sections'])} sections, "
          f"{len(kept['metrics'])} numbers, {len(kept['series'])} series, on {kept['device']}")
    return 0
