"""Rows of tokens for training. Batch number n depends on the seed and n alone, so a run can be resumed."""
import random

import torch

import corpus


def encode(tok, pieces):
    """(ids, learnt) of a document and its end token."""
    ids, learnt = [], []
    for text, flag in pieces:
        part = tok.encode(text).ids
        ids += part
        learnt += [flag] * len(part)
    return ids + [0], learnt + [True]


class Rows:
    """Rows of length+1 tokens. Each starts with a whole document, so that nothing it needs lies before the row;
    when the next document does not fit, it waits for the next row, and short sums fill the rest."""

    def __init__(self, tok, r, length, longest):
        self.tok, self.r, self.length, self.longest = tok, r, length, longest
        self.waiting = None

    def next_document(self):
        d, self.waiting = self.waiting, None
        return d or encode(self.tok, corpus.document(self.r, self.longest))

    def row(self):
        n = self.length + 1
        ids, learnt = self.next_document()
        while len(ids) < n:
            d = self.next_document() if not self.waiting else encode(self.tok, corpus.sums(self.r))
            if len(ids) + len(d[0]) > n and not self.waiting:
                self.waiting = d
                continue
            ids, learnt = ids + d[0], learnt + d[1]
        return ids[:n], learnt[:n]


def batch(tok, seed, number, size, length, longest):
    """(ids, learnt), both (size, length+1)."""
    rows = Rows(tok, random.Random(f"{seed}-{number}"), length, longest)
    ids, learnt = zip(*(rows.row() for _ in range(size)))
    return torch.tensor(ids), torch.tensor(learnt)
