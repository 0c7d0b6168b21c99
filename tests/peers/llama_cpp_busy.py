"""Speed beside a busy process: how much 2 threads keep when another program wants a core.

    python3 tests/peers/llama_cpp_busy.py FILE.gguf [--pairs 5]

A process of normal priority that never sleeps runs beside decodelab and beside llama.cpp, which take
turns; quiet runs stand between the busy ones. Bounds, for decodelab: 2 threads keep at least half of
their quiet speed, and are at most 10 % slower than 1 thread under the same load. Writes
docs/measurements/llama_cpp_busy.json.
"""
import argparse
import contextlib
import datetime
import pathlib
import statistics
import subprocess
import sys

import llama_cpp

from bandwidth import cpu
from decodelab import write_result
from llama_cpp_speed import Peer, ours

LOAD = {"prefill": 512, "decode": 48, "batch": 1}
KEYS = ("prefill_tokens_per_s", "decode_tokens_per_s")


@contextlib.contextmanager
def busy_process():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    peers = {threads: Peer(args.gguf, threads) for threads in (1, 2)}
    programs = {"decodelab": lambda threads: ours(args.gguf, threads, LOAD),
                "llama.cpp": lambda threads: peers[threads].measure(LOAD)}
    speeds = {}
    for _ in range(args.pairs):
        for state in ("quiet", "busy"):
            with busy_process() if state == "busy" else contextlib.nullcontext():
                for threads in (1, 2):
                    for name, run in programs.items():
                        for key, value in run(threads).items():
                            if key in KEYS:
                                speeds.setdefault((name, state, threads, key), []).append(value)
    for peer in peers.values():
        peer.close()
    rows, holds = [], True
    for name in programs:
        for key in KEYS:
            median = {(state, threads): statistics.median(speeds[name, state, threads, key])
                      for state in ("quiet", "busy") for threads in (1, 2)}
            row = {"program": name, "what": key.split("_")[0],
                   "quiet_1": round(median["quiet", 1], 1), "quiet_2": round(median["quiet", 2], 1),
                   "busy_1": round(median["busy", 1], 1), "busy_2": round(median["busy", 2], 1),
                   "kept": round(median["busy", 2] / median["quiet", 2], 2),
                   "against_1_thread": round(median["busy", 2] / median["busy", 1], 2)}
            rows.append(row)
            print("  ".join(f"{k} {v}" for k, v in row.items()), flush=True)
            if name == "decodelab":
                holds = holds and row["kept"] >= 0.5 and row["against_1_thread"] >= 0.9
    write_result("llama_cpp_busy", {
        "cpu": cpu(), "date": datetime.date.today().isoformat(), "pairs": args.pairs,
        "llama_cpp_python": llama_cpp.__version__, "model": args.gguf.name, "rows": rows})
    raise SystemExit(0 if holds else 1)


if __name__ == "__main__":
    main()
