"""Counts what one call of each rung of the CPU ladders does, and records it beside the times.

    callgrind.py PROGRAM [--record FILE] [--keep-times]

Runs `PROGRAM --json FILE`, which times the rungs, then every rung once under valgrind's callgrind,
and adds to its record

    counted: {instructions, multiplies, bytes, l1_misses}

multiplies are the executed multiply instructions of vectors and floats, by their names in the
disassembly; bytes are 64 for each read that misses both simulated caches: an L1 of 32 KiB and a
second level of 512 KiB, so that the counts are the same on every machine. Valgrind knows no
AVX-512: rungs that need it are not counted. Needs valgrind and objdump; exits with 77 without them.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "measurements" / "ladders_cpu.json"
CALL = "lab::cpu_ladder::counted_call*"
CACHES = ["--D1=32768,8,64", "--LL=524288,16,64", "--I1=32768,8,64"]
LINE_BYTES = 64
EXIT_FAILED, EXIT_UNAVAILABLE = 1, 77
MULTIPLY = re.compile(r"v?(mul[ps][sd]|f(n?m(add|sub)|maddsub|msubadd)\w*[ps][sd]|pmadd\w+|pmul\w+|"
                      r"pdp\w+|dpbf16ps)$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(?:(?:lock|rep[nz]*|data16|notrack|bnd) )*(\w+)")


def mnemonics(program):
    """{address: name} of every instruction of a program."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True,
                             capture_output=True, text=True).stdout
    found = (INSTRUCTION.match(line) for line in listing.splitlines())
    return {int(match[1], 16): match[2] for match in found if match}


def parse(profile):
    """([(object, address, {event: count})], totals) of a callgrind file with --dump-instr=yes and
    without compression. What a call cost is left out where the call is: the callee's lines have it."""
    rows, totals, events, at = [], {}, [], ""
    skip = False
    for line in profile.splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("ob="):
            at = line[3:]
        elif line.startswith(("summary:", "totals:")):
            totals = dict(zip(events, map(int, line.split()[1:])))
        elif line.startswith("calls="):
            skip = True
        elif line.startswith("0x"):
            if not skip:
                address, _, *costs = line.split()
                rows.append((at, int(address, 16), dict(zip(events, map(int, costs)))))
            skip = False
    return rows, totals


def counted(rows, totals, program, names):
    """The counters of a rung. Instructions of other objects than the program are no multiplications
    of its kernels."""
    multiplies = sum(costs.get("Ir", 0) for at, address, costs in rows
                     if at == program and MULTIPLY.match(names.get(address, "")))
    return {"instructions": totals.get("Ir", 0), "multiplies": multiplies,
            "bytes": LINE_BYTES * totals.get("DLmr", 0), "l1_misses": totals.get("D1mr", 0)}


def count(program, ladder, number, names, arguments=()):
    """The counters of one call of a rung; None where its instructions are not there."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--cache-sim=yes",
             *CACHES, "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
             f"--toggle-collect={CALL}", program, ladder, "--rung", str(number), "--once",
             *arguments], capture_output=True, text=True, check=False)
        if done.returncode == EXIT_UNAVAILABLE:
            return None
        if done.returncode != 0:
            raise RuntimeError(f"{ladder} rung {number} under valgrind: {done.stderr.strip()}")
        result = counted(*parse(out.read_text()), program, names)
    if result["instructions"] == 0:
        raise RuntimeError(f"{ladder} rung {number}: valgrind saw no call of {CALL}; the program "
                           "must keep its symbols")
    return result


def add_counts(record, program):
    """Fills in `counted` for every rung of a record."""
    names = mnemonics(program)
    for ladder in record["ladders"]:
        size = ",".join(str(ladder["counted_size"][name]) for name in "TNK")
        for number, rung in enumerate(ladder["rungs"], 1):
            rung["counted"] = count(program, ladder["name"], number, names,
                                    ["--size", size, "--format", ladder["format"]])


def with_times(record, old):
    """A record without times, with those of an older one where the rung has the same name."""
    times = {(ladder["name"], rung["name"]): rung["timed"] for ladder in old["ladders"]
             for rung in ladder["rungs"] if "timed" in rung}
    for ladder in record["ladders"]:
        for rung in ladder["rungs"]:
            if (ladder["name"], rung["name"]) in times:
                rung["timed"] = times[ladder["name"], rung["name"]]
    kept = ("cpu", "date", "compiler", "rounds", "bandwidth_gb_s")
    return {**record, **{name: old[name] for name in kept if name in old}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    parser.add_argument("--keep-times", action="store_true", help="count only")
    options = parser.parse_args()
    for tool in ("valgrind", "objdump"):
        if shutil.which(tool) is None:
            print(f"callgrind.py needs {tool}", file=sys.stderr)
            return EXIT_UNAVAILABLE
    program = str(options.program.resolve())
    rounds = ["--rounds", "0"] if options.keep_times else []
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "record.json"
        done = subprocess.run([program, "--json", str(file), *rounds], check=False)
        if done.returncode != 0:
            return EXIT_FAILED
        record = json.loads(file.read_text())
    if options.keep_times and options.record.exists():
        record = with_times(record, json.loads(options.record.read_text()))
    add_counts(record, program)
    options.record.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
