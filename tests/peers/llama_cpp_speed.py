"""decodelab against llama.cpp: same file, same threads, same prompt, A B A B in one session.

    python3 tests/peers/llama_cpp_speed.py SMOLLM2.gguf [--pairs 7] [--only Q8_0,Q4_0] [--large]

For SmolLM2 in six formats (made here from SMOLLM2.gguf) and, with --large, random models of a 1.1B
shape in Q4_0 and Q8_0: prefill of 512 tokens, decode after it, and decode of 16 sequences together,
on 1 and 2 threads. A ratio is the median of the pairs' ratios; its range is the quartiles. The
bandwidth and the peak of f32 arithmetic are measured between the pairs. A run of everything also
writes the table of README.md. Writes docs/measurements/llama_cpp_speed.json.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import llama_cpp

from bandwidth import cpu
from decodelab import ROOT, Decodelab, write_result

HERE = pathlib.Path(__file__).parent
FORMATS = ("Q4_1", "Q8_0", "Q4_0", "BF16", "F16", "F32")
QUANTISED = ("Q4_1", "Q8_0", "Q4_0")


class Peer:
    """llama.cpp in a process of its own, loaded once."""

    def __init__(self, path, threads):
        self.process = subprocess.Popen(
            [sys.executable, HERE / "llama_cpp_worker.py", str(path), str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "100000",
                 "PATH": "/usr/bin:/bin"})

    def measure(self, load):
        self.process.stdin.write(json.dumps(load) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(path, threads, load):
    row, = Decodelab(path).bench(
        "--threads", str(threads), "--repeat", "1", "--prefill", str(load["prefill"]),
        "--decode", str(load["decode"]), "--batch", str(load["batch"]))
    return row


def summary(pairs, key):
    """Medians of both, and of the ratio of each pair with its quartiles."""
    ratios = [a[key] / b[key] for a, b in pairs]
    quartiles = statistics.quantiles(ratios, n=4)
    return {"decodelab": round(statistics.median(a[key] for a, _ in pairs), 1),
            "llama.cpp": round(statistics.median(b[key] for _, b in pairs), 1),
            "ratio": round(statistics.median(ratios), 2),
            "quartiles": [round(quartiles[0], 2), round(quartiles[2], 2)]}


def compare(path, name, threads, pairs, loads):
    peer = Peer(path, threads)
    row = {"model": name, "threads": threads}
    for label, (load, keys) in loads.items():
        ours(path, threads, load), peer.measure(load)           # both warm
        runs = [(ours(path, threads, load), peer.measure(load)) for _ in range(pairs)]
        for key in keys:
            row[f"{label}_{key.split('_')[0]}" if label != "one" else key.split("_")[0]] = \
                summary(runs, key)
        row["activations"] = runs[0][0]["activations"]
        if label == "one":
            for share in ("bandwidth_share", "flop_share"):
                row[share] = round(statistics.median(a[share] for a, _ in runs), 3)
    peer.close()
    print(f"{name:<14} {threads} thr  " + "  ".join(
        f"{k} {v['decodelab']:.0f} / {v['llama.cpp']:.0f} = {v['ratio']:.2f} {v['quartiles']}"
        for k, v in row.items() if isinstance(v, dict)) +
        f"  bandwidth {row['bandwidth_share']:.0%}  f32 peak {row['flop_share']:.0%}", flush=True)
    return row


def readme_table(rows):
    """What README.md shows between its speed marks."""
    def cell(row, key):
        v = row.get(key)
        return "" if v is None else (f"{v['decodelab']:.0f} / {v['llama.cpp']:.0f} = **{v['ratio']:.2f}**"
                                     f" ({v['quartiles'][0]:.2f} to {v['quartiles'][1]:.2f})")
    lines = ["| Model | Threads | Decode | Prefill | Decode, 16 sequences | Bandwidth | f32 peak |",
             "|---|---|---|---|---|---|---|"]
    lines += [f"| {r['model']} | {r['threads']} | {cell(r, 'decode')} | {cell(r, 'prefill')} "
              f"| {cell(r, 'batch16_decode')} | {r['bandwidth_share']:.0%} | {r['flop_share']:.0%} |"
              for r in rows]
    return "\n".join(lines)


def write_readme(result):
    path = ROOT / "README.md"
    before, rest = path.read_text().split("<!-- speed:begin -->")
    _, after = rest.split("<!-- speed:end -->")
    heading = f"Measured on {result['cpu']}, {result['date']}, medians of {result['pairs']} pairs:"
    path.write_text(f"{before}<!-- speed:begin -->\n{heading}\n\n{readme_table(result['rows'])}\n"
                    f"<!-- speed:end -->{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--out", default="llama_cpp_speed")
    args = parser.parse_args()
    both = ("prefill_tokens_per_s", "decode_tokens_per_s")
    one = {"prefill": 512, "decode": 48, "batch": 1}
    sixteen = {"prefill": 16, "decode": 24, "batch": 16}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name in filter(None, args.only.split(",")):
            path = f"{folder}/{name}.gguf"
            subprocess.run([sys.executable, HERE / "requantize.py", args.gguf, path, name], check=True)
            files.append((path, f"SmolLM2 {name}", one, name in QUANTISED))
        for name in ("Q4_0", "Q8_0") if args.large else ():
            path = f"{folder}/large_{name}.gguf"
            subprocess.run([sys.executable, HERE / "random_model.py", args.gguf, path, name], check=True)
            files.append((path, f"1.1B {name}", {"prefill": 128, "decode": 16, "batch": 1}, False))
        for path, name, load, batched in files:
            loads = {"one": (load, both)}
            if batched:
                loads["batch16"] = (sixteen, both[1:])
            for threads in map(int, args.threads.split(",")):
                rows.append(compare(path, name, threads, args.pairs, loads))
    result = {
        "cpu": cpu(), "date": datetime.date.today().isoformat(), "pairs": args.pairs,
        "llama_cpp_python": llama_cpp.__version__,
        "command": f"python3 tests/peers/llama_cpp_speed.py {args.gguf.name}"
                   f" --pairs {args.pairs}" + (" --large" if args.large else ""),
        "rows": rows}
    write_result(args.out, result)
    if args.only == ",".join(FORMATS):
        write_readme(result)


if __name__ == "__main__":
    main()
