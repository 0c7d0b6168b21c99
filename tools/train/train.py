"""Trains the target, or the draft that is distilled from it, and keeps a checkpoint that a later run goes on from.

    python3 train.py target --out out --steps 3200
    python3 train.py draft --out out --steps 2500
"""
import argparse
import math
import pathlib
import time

import torch
import torch.nn.functional as F

import data
import vocabulary
from model import SHAPES, VOCABULARY, Llama
from muon import Muon

TOKENS = 4096                     # in a batch
SEEDS = {"target": 1, "draft": 2}
RATES = {"target": 6e-3, "draft": 1e-2}
LONG_ROWS_FROM = {"target": 0.82, "draft": 0.0}   # share of the schedule; the teacher has to be compiled for each length


def longest(done):
    """Short passages first: copying is then learnt in minutes, not hours."""
    return 8 if done < 0.15 else 20 if done < 0.3 else 55


def row_length(name, done):
    """The target's long rows come last: they cost more, and teach the positions above 256."""
    return 256 if done < LONG_ROWS_FROM[name] else 512


def rate(done, step):
    """Share of the full learning rate: warm-up, then a cosine."""
    return min(1, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))


def optimizers(model, lr):
    """Muon for the matrices inside the blocks, AdamW for the embedding and the norms."""
    matrices = [p for n, p in model.named_parameters() if n.startswith("blk.") and p.dim() == 2]
    others = [p for n, p in model.named_parameters() if not (n.startswith("blk.") and p.dim() == 2)]
    return [Muon(matrices, lr), torch.optim.AdamW(others, lr, betas=(0.9, 0.95), weight_decay=0)]


def next_token_loss(model, x, y, learnt):
    loss = F.cross_entropy(model(x).reshape(-1, VOCABULARY), y.reshape(-1), reduction="none")
    return (loss * learnt.reshape(-1)).sum() / learnt.sum()


def distillation_loss(model, x, teacher, learnt):
    """KL(target || draft) at every position, for the draft's use is to be right wherever the target is asked;
    also where the target itself was taught nothing. teacher: log-probabilities."""
    return F.kl_div(model(x).log_softmax(-1), teacher, log_target=True, reduction="none").sum(-1).mean()


class Run:
    """A model in training: weights, optimizers and clock, all of them in the checkpoint."""

    def __init__(self, name, args):
        self.name, self.args = name, args
        self.file = args.out / f"{name}.pt"
        self.tok = vocabulary.load(args.out / "tokenizer.json")
        self.model = Llama(SHAPES[name])
        self.opts = optimizers(self.model, RATES[name])
        self.step, self.seconds = 0, 0.0
        if self.file.exists():
            self.resume(torch.load(self.file))
        self.loss, self.teacher = next_token_loss, None
        if name == "draft":
            target = Llama(SHAPES["target"]).eval()
            target.load_state_dict(torch.load(args.out / "target.pt")["model"])
            self.loss, self.teacher = distillation_loss, target
        if args.compile:
            self.loss = torch.compile(self.loss, dynamic=False)
            if self.teacher is not None:
                self.teacher = torch.compile(self.teacher, dynamic=False)

    def resume(self, saved):
        self.model.load_state_dict(saved["model"])
        if self.args.restart:
            return
        for opt, state in zip(self.opts, saved["opts"]):
            opt.load_state_dict(state)
        self.step, self.seconds = saved["step"], saved["seconds"]

    def save(self):
        part = self.file.with_suffix(".part")
        torch.save(dict(model=self.model.state_dict(), opts=[o.state_dict() for o in self.opts],
                        step=self.step, seconds=self.seconds), part)
        part.replace(self.file)                            # never half a checkpoint

    def done(self):
        """0 to 1: by steps, or by the clock where that runs out first."""
        return min(1, max(self.step / self.args.steps, self.seconds / 60 / self.args.minutes))

    def train_step(self):
        done = 1 - (1 - self.done()) * self.args.restart if self.args.restart else self.done()
        length = row_length(self.name, done)
        ids, learnt = data.batch(self.tok, SEEDS[self.name] + 10 * self.args.seed, self.step,
                                 TOKENS // length, length, longest(done))
        x, y, learnt = ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), learnt[:, 1:].float()
        if self.teacher is not None:
            with torch.no_grad():
                y = self.teacher(x).log_softmax(-1)
        loss = self.loss(self.model, x, y, learnt)
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for opt in self.opts:
            for group in opt.param_groups:
                group["lr"] = RATES[self.name] * rate(done, self.step)
            opt.step()
        self.step += 1
        return loss.item()

    def train(self):
        saved = time.time()
        while self.done() < 1:
            start = time.time()
            loss = self.train_step()
            self.seconds += time.time() - start
            if self.step % 50 == 0:
                print(f"{self.seconds / 60:6.1f} min  step {self.step}  loss {loss:.4f}", flush=True)
            if time.time() - saved > 120:
                self.save()
                saved = time.time()
        self.save()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("name", choices=SHAPES)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"))
    p.add_argument("--steps", type=int, required=True)
    p.add_argument("--minutes", type=float, default=math.inf, help="ends the schedule earlier on a slow machine")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=0, help="another one brings other documents")
    p.add_argument("--restart", type=float, default=0, help="start a new schedule from the saved weights, at this "
                   "share of the way to the end of the schedule (0.3: the last 30 percent of it)")
    p.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    Run(args.name, args).train()


if __name__ == "__main__":
    main()
