"""A small Llama in PyTorch. Its parameters carry the names that the tensors have in a GGUF file."""
import dataclasses
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 1024
CONTEXT = 1024
EPSILON = 1e-5
ROPE_BASE = 10000.0


@dataclasses.dataclass(frozen=True)
class Shape:
    dim: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int

    @property
    def head_dim(self):
        return self.dim // self.heads


SHAPES = {"target": Shape(dim=256, ffn=512, layers=4, heads=8, kv_heads=2),
          "draft": Shape(dim=128, ffn=256, layers=2, heads=4, kv_heads=1)}


class Norm(nn.Module):
    """RMSNorm."""

    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON)


def rotate(x, cos, sin):
    """RoPE on interleaved pairs (2i, 2i+1), as GGUF's llama has it. x: (batch, heads, tokens, head_dim)."""
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        self.attn_norm, self.ffn_norm = Norm(s.dim), Norm(s.dim)
        self.attn_q = nn.Linear(s.dim, s.dim, bias=False)
        self.attn_k = nn.Linear(s.dim, s.kv_heads * s.head_dim, bias=False)
        self.attn_v = nn.Linear(s.dim, s.kv_heads * s.head_dim, bias=False)
        self.attn_output = nn.Linear(s.dim, s.dim, bias=False)
        self.ffn_gate = nn.Linear(s.dim, s.ffn, bias=False)
        self.ffn_up = nn.Linear(s.dim, s.ffn, bias=False)
        self.ffn_down = nn.Linear(s.ffn, s.dim, bias=False)

    def heads(self, x, count):
        return x.view(x.shape[0], x.shape[1], count, self.shape.head_dim).transpose(1, 2)

    def attention(self, x, cos, sin):
        s = self.shape
        q = rotate(self.heads(self.attn_q(x), s.heads), cos, sin)
        k = rotate(self.heads(self.attn_k(x), s.kv_heads), cos, sin)
        v = self.heads(self.attn_v(x), s.kv_heads)
        group = s.heads // s.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attn_output(y.transpose(1, 2).reshape(x.shape))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attn_norm(x), cos, sin)
        y = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(VOCABULARY, shape.dim)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape.dim)
        pairs = torch.arange(0, shape.head_dim, 2) / shape.head_dim
        angles = torch.outer(torch.arange(float(CONTEXT)), ROPE_BASE ** -pairs)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.initialise()

    def initialise(self):
        """std = fan_in^-0.5: the usual 0.02 is far too small at these widths, and copying is then not learnt."""
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=p.shape[1] ** -0.5 / (math.sqrt(2 * self.shape.layers) if last else 1))

    def hidden(self, ids):
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:ids.shape[1]], self.sin[:ids.shape[1]])
        return self.output_norm(x)

    def logits(self, hidden):
        return hidden @ self.token_embd.weight.T         # tied embeddings

    def forward(self, ids):
        return self.logits(self.hidden(ids))


@torch.no_grad()
def greedy(model, ids, count, stop=0):
    """Appends up to count greedy tokens, the whole sequence computed anew for each: slow, and plain to see."""
    ids = list(ids)
    for _ in range(count):
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
        if ids[-1] == stop:
            break
    return ids
