#!/usr/bin/env python3
"""Breaks the CUDA kernels on purpose and sees whether their tests notice.

Each mutant deletes one barrier, __syncwarp, wait for an asynchronous copy or bounds check of a
.cu or .cuh file. The files that use it are compiled for the emulator's trace flavour, linked
in front of the library that holds the originals, and the test program must fail. A mutant that
passes has found a test that is too weak or a line that is not needed; a line that is needed
for another reason than its result can say so with the comment "// mutate: skip".

usage: tools/kernels/mutate.py --build build/ci [--json FILE] [FILE ...]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = {  # folder of kernels -> the program that tests them in the trace flavour
    "kernels/cuda": "parity_simt_trace",
}
SKIP = "// mutate: skip"


@dataclasses.dataclass
class Mutant:
    file: pathlib.Path  # relative to ROOT
    line: int  # from 1
    kind: str
    text: str  # the line, before
    mutated: str  # and after


# What is deleted, as (kind, pattern, replacement); each match on a line is one mutant.
RULES = [
    ("barrier", re.compile(r"\b__syncthreads\(\);"), ";"),
    ("__syncwarp", re.compile(r"\b__syncwarp\([^;]*\);"), ";"),
    ("copy wait", re.compile(r"\bcp_async_wait<[^;]*>\(\);"), ";"),
    ("fence", re.compile(r"\b__threadfence\(\);"), ";"),
    ("early return", re.compile(r"\bif \([^;{}]*>= (?!k[A-Z])[^;{}]*\) (?=return;)"),
     "if (false) "),
    ("bounds check", re.compile(r"\bif \((?:\w+ < \w+(?:\.\w+(?:\[\d\])?)?)\) (?!return)"), "if (true) "),
    ("bounds mask", re.compile(r"(?<=[=(,] )\w+ < \w+(?:\.\w+)? \? "), "true ? "),
]


def mutants_of(file):
    """All mutants of one file."""
    result = []
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        code = line.split("//")[0]
        if SKIP in line or "constexpr" in code:
            continue
        for kind, pattern, replacement in RULES:
            for match in pattern.finditer(code):
                mutated = line[: match.start()] + replacement + line[match.end():]
                result.append(Mutant(file, number, kind, line.strip(), mutated))
    return result


def sources_using(folder, header, sources):
    """The .cu files that include `header`, directly or through other headers of the folder."""
    wanted = {header.name}
    files = list((ROOT / folder).glob("*.cuh")) + list((ROOT / folder).glob("*.hpp"))
    while True:
        more = {f.name for f in files if f.name not in wanted and includes(f, wanted)}
        if not more:
            break
        wanted |= more
    return [s for s in sources if includes(ROOT / s, wanted)]


def includes(file, names):
    found = re.findall(r'#include "(?:[\w/]*/)?([\w.]+)"', file.read_text())
    return any(name in names for name in found)


class Suite:
    """A test program, with the commands that compile and link it."""

    def __init__(self, build, folder, program):
        self.build, self.folder, self.program = build, folder, program
        subprocess.run(["ninja", "-C", build, program], check=True, stdout=subprocess.DEVNULL)
        self.compile = {}  # .cu, relative to ROOT -> arguments, without the input and output
        for entry in json.loads((build / "compile_commands.json").read_text()):
            wrapper = pathlib.Path(entry["file"])
            if "-fsanitize=thread" not in entry["command"] or not wrapper.match("*.cu.cpp"):
                continue
            source = wrapper.relative_to(build / "emulated").with_suffix("")
            if source.parent == pathlib.Path(folder):
                self.compile[source] = self.stripped(shlex.split(entry["command"]))
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", program], check=True,
                                  capture_output=True, text=True).stdout.splitlines()
        link = [c for c in commands if re.search(rf"-o \S*/{program}\b", c)][-1]
        self.link = shlex.split(link.removeprefix(": && ").removesuffix(" && :"))
        self.path = next(build.rglob(program))

    @staticmethod
    def stripped(arguments):
        """Without the input, the output and the dependency file."""
        result, skip = [], 0
        for a in arguments:
            if skip:
                skip -= 1
            elif a in ("-o", "-c", "-MF", "-MT"):
                skip = 1
            elif a != "-MD":
                result.append(a)
        return result

    def run(self, program, timeout):
        """Whether the tests pass, and the line that says why not."""
        environment = dict(os.environ, SIMT_TIMEOUT="20")
        try:
            done = subprocess.run([program, "--abort"], env=environment, capture_output=True,
                                  text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return False, "time limit"
        if done.returncode == 0:
            return True, ""
        reports = re.findall(r"SIMT ERROR: (.*)", done.stdout)
        return False, reports[0].strip() if reports else "wrong result"

    def try_mutant(self, mutant, timeout):
        """@return (status, why): killed, survived or invalid (does not compile)."""
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch) / "kernels"
            top = pathlib.Path(self.folder).name
            shutil.copytree(ROOT / self.folder, tree / top)
            copy = tree / top / mutant.file.name
            lines = copy.read_text().splitlines()
            lines[mutant.line - 1] = mutant.mutated
            copy.write_text("\n".join(lines) + "\n")
            sources = ([mutant.file] if mutant.file.suffix == ".cu" else
                       sources_using(self.folder, mutant.file, list(self.compile)))
            objects = []
            for source in sources:
                target = pathlib.Path(scratch) / (source.name + ".o")
                command = self.compile[source]
                compiled = subprocess.run(
                    command[:2] + [f"-I{tree}"] + command[2:] +
                    ["-w", "-x", "c++", "-c", tree / top / source.name, "-o", target],
                    cwd=self.build, capture_output=True, text=True)
                if compiled.returncode:
                    return "invalid", compiled.stderr.splitlines()[0]
                objects.append(str(target))
            program = str(pathlib.Path(scratch) / "program")
            link = list(self.link)
            at = link.index("-o")
            link[at + 1] = program
            link[at:at] = objects  # in front of the library with the originals
            subprocess.run(link, cwd=self.build, check=True, capture_output=True)
            passed, why = self.run(program, timeout)
            return ("survived", "") if passed else ("killed", why)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="only these files")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/ci",
                        help="a configured build folder")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kind", help="only this kind: " + ", ".join(k for k, _, _ in RULES))
    options = parser.parse_args()
    build = options.build.resolve()

    results = []
    for folder, program in SUITES.items():
        files = sorted(f.relative_to(ROOT) for f in (ROOT / folder).iterdir()
                       if f.suffix in (".cu", ".cuh"))
        if options.files:
            chosen = {(ROOT / f).resolve() for f in options.files}
            files = [f for f in files if (ROOT / f).resolve() in chosen]
        mutants = [m for f in files for m in mutants_of(f)
                   if options.kind in (None, m.kind)]
        if not mutants:
            continue
        suite = Suite(build, folder, program)
        begin = time.monotonic()
        passed, why = suite.run(suite.path, 3600)
        if not passed:
            sys.exit(f"{program} fails without a mutant ({why}); mend it first")
        timeout = 60 + 5 * (time.monotonic() - begin)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            runs = {pool.submit(suite.try_mutant, m, timeout): m for m in mutants}
            for run in concurrent.futures.as_completed(runs):
                status, why = run.result()
                m = runs[run]
                results.append({"file": str(m.file), "line": m.line, "kind": m.kind,
                                "code": m.text, "status": status, "why": why})
                print(f"{status:9} {m.file}:{m.line:<4} {m.kind:12} {why or m.text}", flush=True)

    results.sort(key=lambda r: (r["file"], r["line"]))
    count = {s: sum(r["status"] == s for r in results)
             for s in ("killed", "survived", "invalid")}
    print("{killed} noticed, {survived} survived, {invalid} did not compile".format(**count))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if count["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
