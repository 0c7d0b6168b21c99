"""SmolLM2 against llama.cpp on the same file: where do the greedy texts part?

    python3 tests/peers/llama_cpp_text.py FILE.gguf [--tokens 48]

llama.cpp quantises activations to 8 bits before every product, decodelab keeps them in f32: at a
near tie the two may choose differently. This reports, it does not fail.
Writes docs/measurements/llama_cpp_text.json.
"""
import argparse
import json
import pathlib

import llama_cpp

from decodelab import ROOT, Decodelab, write_result


def greedy(peer, ids, n):
    peer.reset()
    out = []
    for token in peer.generate(ids, temp=0.0, repeat_penalty=1.0):
        out.append(token)
        if len(out) == n:
            return out
    return out


def gap(logits):
    """How far the best logit is ahead of the second."""
    best, second = sorted(logits)[-1:-3:-1]
    return best - second


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=48)
    args = parser.parse_args()
    ours = Decodelab(args.gguf)
    peer = llama_cpp.Llama(str(args.gguf), n_ctx=1024, n_threads=2, verbose=False)
    rows = []
    for kind, texts in json.loads((ROOT / "tests/peers/prompts.json").read_text()).items():
        for text in texts:
            chat = ["--chat"] if kind == "chat" else []
            result = ours.generate(text, *chat, "--max-tokens", str(args.tokens), "--ignore-end")
            theirs = greedy(peer, result["prompt_ids"], args.tokens)
            same = next((i for i, (a, b) in enumerate(zip(result["ids"], theirs)) if a != b),
                        args.tokens)
            row = {"kind": kind, "prompt": text, "equal_tokens": same}
            if same < args.tokens:
                row["logit_gap_there"] = gap(
                    ours.logits([result["prompt_ids"] + result["ids"][:same]])[0])
            rows.append(row)
            print(f"{same:>3} of {args.tokens} tokens equal  {row.get('logit_gap_there', '')}  {text}")
    write_result("llama_cpp_text", {"model": args.gguf.name, "llama_cpp_python": llama_cpp.__version__,
                                    "tokens": args.tokens, "prompts": rows})


if __name__ == "__main__":
    main()
