"""Time to load a model, and peak memory, of one generated token.

    python3 tests/peers/load_and_memory.py FILE.gguf

Bounds: loading under 0.5 s; peak memory at most the file's size + the KV cache + 150 MB.
Writes docs/measurements/load_and_memory.json.
"""
import os
import pathlib
import subprocess
import sys
import time

from decodelab import ROOT, write_result

PROGRAM = pathlib.Path(os.environ.get("DECODELAB", ROOT / "build/cpu/tools/decodelab/decodelab"))


def run(path, prompt, max_tokens):
    """@return seconds, peak resident bytes of the program"""
    start = time.perf_counter()
    pid = os.posix_spawn(str(PROGRAM), [str(PROGRAM), "generate", "--model", str(path), "--prompt",
                                        prompt, "--max-tokens", str(max_tokens), "--json"],
                         os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit("generate failed")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def main():
    path = pathlib.Path(sys.argv[1])
    run(path, "Hi", 1)                              # the file is in the page cache after this
    runs = [run(path, "Hi", 1) for _ in range(7)]
    seconds = sorted(s for s, _ in runs)[3]
    long_prompt = "one two three four " * 500       # about 2,000 positions
    _, peak = run(path, long_prompt, 16)
    bench = subprocess.run([PROGRAM, "inspect", str(path)], capture_output=True, text=True, check=True)
    shape = dict(zip(*[iter(bench.stdout.split("\n")[2].split())] * 2))
    per_token = 2 * int(shape["n_layers"]) * int(shape["n_kv_heads"]) * int(shape["head_dim"]) * 4
    kv = per_token * 2100
    limit = path.stat().st_size + kv + 150e6
    print(f"start to first token: {seconds:.3f} s (median of 7)")
    print(f"peak memory {peak / 1e6:.0f} MB; file {path.stat().st_size / 1e6:.0f} + KV cache "
          f"{kv / 1e6:.0f} + 150 = {limit / 1e6:.0f} MB allowed")
    write_result("load_and_memory", {"model": path.name, "seconds_to_first_token": round(seconds, 4),
                                     "peak_bytes": peak, "allowed_bytes": int(limit)})
    raise SystemExit(0 if seconds < 0.5 and peak <= limit else 1)


if __name__ == "__main__":
    main()
