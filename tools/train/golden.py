"""Golden values from PyTorch in f32, computed from the exported files: what any other implementation must reproduce.

    python3 golden.py --models ../../models
"""
import argparse
import json
import pathlib
import random

import torch

import corpus
from load import load
from model import greedy

LENGTHS = (1, 2, 3, 17, 64, 200)
AHEAD = 24
LEAD = 0.01


def text_ids(tok, r, length):
    """The first ids of documents of every kind, one after the other."""
    ids = []
    while len(ids) < length:
        ids += tok.encode(corpus.text(corpus.document(r))).ids + [0]
    return ids[:length]


@torch.no_grad()
def case(model, ids):
    """smallest_lead: by how much the greedy token beats the next best, at the closest of the greedy steps."""
    whole = greedy(model, ids, AHEAD, stop=None)
    logits = model(torch.tensor([whole]))[0, len(ids) - 1:]
    best = logits[:-1].topk(2).values
    last = model(torch.tensor([ids]))[0, -1].tolist()
    return {"ids": ids, "logits": [float(f"{v:.9g}") for v in last], "greedy": whole[len(ids):],
            "smallest_lead": round(float((best[:, 0] - best[:, 1]).min()), 6)}


def clear_case(model, tok, r, length):
    """The first text whose greedy tokens all lead clearly: no other order of summation may change them."""
    while True:
        found = case(model, text_ids(tok, r, length))
        if found["smallest_lead"] > LEAD:
            return found


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "models")
    args = p.parse_args()
    torch.set_num_threads(2)
    (args.models / "golden").mkdir(exist_ok=True)
    for name in ("target", "draft"):
        model, tok = load(args.models / f"{name}.gguf")
        r = random.Random("golden")
        cases = [clear_case(model, tok, r, length) for length in LENGTHS]
        file = args.models / "golden" / f"{name}.json"
        file.write_text(json.dumps({"model": f"{name}.gguf", "cases": cases}) + "\n")
        print(f"{file.name}: {len(cases)} cases, {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
