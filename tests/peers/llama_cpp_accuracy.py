"""What 8-bit activations cost, for decodelab and for llama.cpp, on the same text and weights.

    python3 tests/peers/llama_cpp_accuracy.py SMOLLM2.gguf [--text FILE] [--window 512]

Each program is compared with itself computing in f32: decodelab with --activations f32 on the same
file, llama.cpp on an F32 file that holds exactly the quantised file's values. Mean KL divergence
and perplexity over the text (by default docs/instructors.md and docs/architecture.md: technical
prose that neither model was made for). Writes docs/measurements/llama_cpp_accuracy.json.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy

from decodelab import ROOT, Decodelab, write_result

HERE = pathlib.Path(__file__).parent


def log_probabilities(path, ids, window):
    """llama.cpp's log softmax of each token but a window's last, (tokens, V), window by window."""
    peer = llama_cpp.Llama(str(path), n_ctx=window, n_batch=window, n_threads=2, logits_all=True,
                           verbose=False)
    for begin in range(0, len(ids) - 1, window):
        part = ids[begin:begin + window]
        peer.reset()
        peer.eval(part)
        logits = numpy.array(peer.scores[:len(part)], numpy.float64)
        top = logits.max(axis=1, keepdims=True)
        yield part, logits - top - numpy.log(numpy.exp(logits - top).sum(axis=1, keepdims=True))


def llama_cpp_row(quantised, exact, ids, window):
    tokens = kl = nll = nll_exact = same = 0
    for (part, q), (_, p) in zip(log_probabilities(quantised, ids, window),
                                 log_probabilities(exact, ids, window)):
        for t in range(len(part) - 1):
            kl += float((numpy.exp(p[t]) * (p[t] - q[t])).sum())
            nll -= q[t][part[t + 1]]
            nll_exact -= p[t][part[t + 1]]
            same += int(p[t].argmax() == q[t].argmax())
            tokens += 1
    return {"tokens": tokens, "mean_kl": kl / tokens, "same_top": same / tokens,
            "perplexity": float(numpy.exp(nll / tokens)),
            "perplexity_f32": float(numpy.exp(nll_exact / tokens))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--window", type=int, default=512)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = args.text
        if text is None:
            text = pathlib.Path(folder, "text.txt")
            text.write_text("".join((ROOT / "docs" / name).read_text()
                                    for name in ("instructors.md", "architecture.md")))
        exact = pathlib.Path(folder, "F32.gguf")
        subprocess.run([sys.executable, HERE / "requantize.py", args.gguf, exact, "F32"], check=True)
        rows = []
        for name in (args.gguf.name, "Q8_0", "Q4_0"):
            model = args.gguf
            if name in ("Q8_0", "Q4_0"):
                model = pathlib.Path(folder, f"{name}.gguf")
                subprocess.run([sys.executable, HERE / "requantize.py", args.gguf, model, name],
                               check=True)
                subprocess.run([sys.executable, HERE / "requantize.py", model, exact, "F32"],
                               check=True)
            ours = json.loads(Decodelab(model)._run(
                "perplexity", "--text", str(text), "--window", str(args.window), "--json"))
            ids = Decodelab(model).tokenize([text.read_text()])[0]
            theirs = llama_cpp_row(model, exact, ids, args.window)
            rows.append({"model": name, "decodelab": ours, "llama.cpp": theirs})
            for who, row in (("decodelab", ours), ("llama.cpp", theirs)):
                print(f"{name:<36} {who:<10} {row['tokens']} tokens  KL {row['mean_kl']:.2e}  "
                      f"perplexity {row['perplexity']:.4f} (f32 {row['perplexity_f32']:.4f}, "
                      f"{100 * (row['perplexity'] / row['perplexity_f32'] - 1):+.3f} %)  "
                      f"same top {row['same_top']:.2%}", flush=True)
    write_result("llama_cpp_accuracy", {"window": args.window, "rows": rows,
                                        "llama_cpp_python": llama_cpp.__version__})


if __name__ == "__main__":
    main()
