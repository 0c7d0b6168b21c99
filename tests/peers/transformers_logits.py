"""SmolLM2 against Hugging Face transformers, which loads the same GGUF file in f32.

    python3 tests/peers/transformers_logits.py FILE.gguf [--tokens 48]

Compares the last position's logits of every prompt (bound 2e-3) and the greedy continuation,
token by token. Writes docs/measurements/transformers.json.
"""
import argparse
import json
import pathlib

import torch
import transformers

from decodelab import ROOT, Decodelab, write_result

BOUND = 2e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=48)
    args = parser.parse_args()
    ours = Decodelab(args.gguf)
    peer = transformers.AutoModelForCausalLM.from_pretrained(
        args.gguf.parent, gguf_file=args.gguf.name, dtype=torch.float32)
    peer.eval()
    prompts = json.loads((ROOT / "tests/peers/prompts.json").read_text())
    rows, failures = [], 0
    for kind, text in [(k, t) for k, texts in prompts.items() for t in texts]:
        chat = ["--chat"] if kind == "chat" else []
        result = ours.generate(text, *chat, "--max-tokens", str(args.tokens), "--ignore-end")
        ids = result["prompt_ids"]
        with torch.no_grad():
            expected = peer(torch.tensor([ids])).logits[0, -1]
            made = peer.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=args.tokens,
                                 min_new_tokens=args.tokens, eos_token_id=None, pad_token_id=0)
        greedy = made[0, len(ids):].tolist()
        worst = (torch.tensor(ours.logits([ids])[0]) - expected).abs().max().item()
        equal = result["ids"] == greedy
        ok = worst <= BOUND and equal           # a NaN fails
        failures += not ok
        rows.append({"kind": kind, "prompt": text, "prompt_tokens": len(ids),
                     "largest_logit_difference": worst, "greedy_tokens_equal": equal})
        print(f"{'ok    ' if ok else 'FAILED'} {kind:<6} {worst:.1e}  {args.tokens} tokens "
              f"{'equal' if equal else 'DIFFERENT'}  {text}")
    write_result("transformers", {
        "model": args.gguf.name, "transformers": transformers.__version__,
        "torch": torch.__version__, "bound": BOUND, "greedy_tokens": args.tokens,
        "largest_logit_difference": max(r["largest_logit_difference"] for r in rows),
        "prompts": rows})
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
