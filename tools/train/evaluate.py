"""Measures the exported models, and writes the figures to models/measurements.json.

    python3 evaluate.py --models ../../models
"""
import argparse
import json
import pathlib
import random
import re

import torch

import corpus
import data
from load import load
from model import greedy

PASSAGES = 20
SHORTEST, LONGEST = 20, 60                                 # tokens in a passage to repeat


def say(model, tok, prompt, count):
    """What the model goes on with after the prompt, decoded greedily."""
    ids = tok.encode(prompt).ids
    return tok.decode(greedy(model, ids, count)[len(ids):])


def sums(model, tok):
    """The held-out sums, asked with nothing but the question. [(question, reply, right)]"""
    out = []
    for a, b in sorted(corpus.HELD_OUT):
        reply = say(model, tok, f"What is {a}+{b}?", 40)
        said = re.match(r"\nThe answer is (\d+)\.", reply)
        out.append((f"{a}+{b}", reply, bool(said) and int(said[1]) == a + b))
    return out


def text_of(r, kind):
    """Story sentences in a new order, or words in no order."""
    if kind == "story":
        lines = corpus.story(r) + corpus.story(r)
        return " ".join(r.sample(lines, len(lines)))
    return " ".join(r.choice(corpus.WORDS) for _ in range(LONGEST))


def passages(tok):
    """[(kind, text)]: of each kind ten, their lengths spread evenly from SHORTEST to LONGEST tokens."""
    r, out = random.Random("passages"), []
    for i in range(PASSAGES):
        kind = ("story", "words")[i % 2]
        want = SHORTEST + (LONGEST - SHORTEST) * (i // 2) // (PASSAGES // 2 - 1)
        words = text_of(r, kind).split(" ")
        while len(tok.encode(" " + " ".join(words)).ids) > want:
            words.pop()
        out.append((kind, " ".join(words)))
    return out


@torch.no_grad()
def copy(model, tok, text):
    """Share of the passage's tokens that are right: (on its own, given the right tokens before each)."""
    prompt = tok.encode(f"Repeat: {text}\nAnswer:").ids
    want = tok.encode(" " + text).ids
    got = greedy(model, prompt, len(want))[len(prompt):]
    forced = model(torch.tensor([prompt + want]))[0, len(prompt) - 1:-1].argmax(-1).tolist()
    share = lambda x: sum(a == b for a, b in zip(x, want)) / len(want)
    return share(got), share(forced)


def copying(model, tok):
    out = {}
    results = [(kind, *copy(model, tok, text)) for kind, text in passages(tok)]
    for kind in ("story", "words", "all"):
        rows = [r for r in results if kind in (r[0], "all")]
        out[kind] = {"free_running": sum(r[1] for r in rows) / len(rows),
                     "teacher_forced": sum(r[2] for r in rows) / len(rows)}
    out["exact_passages"] = sum(r[1] == 1 for r in results)
    return out


@torch.no_grad()
def held_out(target, draft, tok):
    """Loss and agreement on fresh documents. "learnt" leaves out the words in no order that stand in a prompt."""
    ids, learnt = data.batch(tok, "held out", 0, 64, 256, 55)
    x, y, learnt = ids[:, :-1], ids[:, 1:], learnt[:, 1:]
    p, q = target(x).log_softmax(-1), draft(x).log_softmax(-1)
    same = (p.argmax(-1) == q.argmax(-1)).float()
    accept = torch.minimum(p.exp(), q.exp()).sum(-1)
    loss = lambda z: -z.gather(-1, y[..., None])[..., 0][learnt].mean().item()
    return {"positions": y.numel(), "positions_learnt": int(learnt.sum()),
            "greedy_agreement": same.mean().item(), "greedy_agreement_learnt": same[learnt].mean().item(),
            "acceptance": accept.mean().item(), "acceptance_learnt": accept[learnt].mean().item(),
            "target_loss_learnt": loss(p), "draft_loss_learnt": loss(q)}


def one_model(model, tok, file):
    asked = sums(model, tok)
    return {"parameters": sum(p.numel() for p in model.parameters()), "file_bytes": file.stat().st_size,
            "sums_right": sum(right for _, _, right in asked), "sums_asked": len(asked),
            "sums_wrong": [f"{q} ->{reply!r}" for q, reply, right in asked if not right],
            "reply_to_2+2": say(model, tok, "What is 2+2?", 60), "copy": copying(model, tok),
            "story": "Once upon a time" + say(model, tok, "Once upon a time", 200)}


def rounded(x):
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    return round(x, 4) if isinstance(x, float) else x


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "models")
    p.add_argument("--threads", type=int, default=2)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    files = {name: args.models / f"{name}.gguf" for name in ("target", "draft")}
    loaded = {name: load(file) for name, file in files.items()}
    tok = loaded["target"][1]
    result = {name: one_model(m, tok, files[name]) for name, (m, _) in loaded.items()}
    result["draft_and_target"] = held_out(loaded["target"][0], loaded["draft"][0], tok)
    text = json.dumps(rounded(result), indent=2)
    print(text)
    (args.models / "measurements.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
