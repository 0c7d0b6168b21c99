"""How near decoding comes to the machine's read bandwidth, for SmolLM2 in several formats.

    python3 tests/peers/bandwidth.py FILE.gguf [--formats F32,Q8_0] [--rounds 5]

Each round runs every format once, so that a disturbance meets all alike; the median share counts.
`bench` measures the bandwidth in the same process, right after decoding. Writes
docs/measurements/bandwidth.json.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

from decodelab import ROOT, Decodelab, write_result


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("--formats", default="F32,F16,BF16,Q8_0,Q4_0,Q4_1")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    shares = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name in args.formats.split(","):
            files[name] = f"{folder}/{name}.gguf"
            subprocess.run([sys.executable, ROOT / "tests/peers/requantize.py", args.gguf,
                            files[name], name], check=True)
        for _ in range(args.rounds):
            for name, path in files.items():
                for row in Decodelab(path).bench("--prefill", "64", "--decode", "48", "--repeat", "2"):
                    shares.setdefault((name, row["threads"]), []).append(row)
    rows = []
    for (name, threads), runs in shares.items():
        row = {"format": name, "threads": threads}
        for key in ("decode_tokens_per_s", "bandwidth_share"):
            row[key] = round(statistics.median(r[key] for r in runs), 3)
        row["bandwidth_share_range"] = [round(f(r["bandwidth_share"] for r in runs), 3) for f in (min, max)]
        rows.append(row)
        print(f"{name:<5} {threads} threads  {row['decode_tokens_per_s']:7.1f} tokens/s  "
              f"{row['bandwidth_share']:.0%} of the bandwidth {row['bandwidth_share_range']}")
    write_result("bandwidth", {"cpu": cpu(), "model": args.gguf.name, "rounds": args.rounds, "rows": rows})


if __name__ == "__main__":
    main()
