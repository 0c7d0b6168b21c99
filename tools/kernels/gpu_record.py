"""Puts what tools/gpu_check.sh left in its folder of logs into one JSON record.

    gpu_record.py LOGS GPU [--out FILE]

{schema, gpu, driver, date, commit, parts: {name: {exit_code, seconds}}, ladders, chapters, bench}
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output_of(*command):
    """What a command prints; empty where it cannot run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def json_lines(path):
    """The lines of a log that are JSON objects."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def record(logs, gpu):
    """The whole record, from whichever parts were run."""
    parts = {}
    for line in (logs / "parts.txt").read_text().splitlines():
        name, code, seconds = line.split()
        parts[name] = {"exit_code": int(code), "seconds": int(seconds)}
    result = {
        "schema": "decodelab-gpu/1",
        "gpu": gpu,
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "nvcc": output_of("nvcc", "--version").splitlines()[-1:],
        "date": datetime.date.today().isoformat(),
        "commit": output_of("git", "rev-parse", "--short", "HEAD"),
        "parts": parts,
        "chapters": {path.stem: json.loads(path.read_text())
                     for path in sorted(logs.glob("[0-9][0-9]_*.json"))},
        "bench": json_lines(logs / "bench.log"),
    }
    ladders = logs / "ladders.json"
    result["ladders"] = json.loads(ladders.read_text()) if ladders.exists() else None
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("gpu")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    name = re.sub(r"[^a-z0-9]+", "_", arguments.gpu.lower()).strip("_")
    out = arguments.out or ROOT / "docs" / "measurements" / f"gpu_{name}.json"
    out.write_text(json.dumps(record(arguments.logs, arguments.gpu), indent=2) + "\n")
    print(f"record: {out}")


if __name__ == "__main__":
    main()
