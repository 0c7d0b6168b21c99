"""Writes checkpoints as GGUF files: matrices F16, norms F32. The writer is the gguf package, not this project's code.

    python3 export.py --out out --models ../../models
"""
import argparse
import json
import pathlib

import gguf
import numpy as np
import torch

from model import CONTEXT, EPSILON, ROPE_BASE, SHAPES, VOCABULARY


def add_shape(w, s):
    """Every key is written, also those that have a default."""
    w.add_context_length(CONTEXT)
    w.add_embedding_length(s.dim)
    w.add_block_count(s.layers)
    w.add_feed_forward_length(s.ffn)
    w.add_head_count(s.heads)
    w.add_head_count_kv(s.kv_heads)
    w.add_key_length(s.head_dim)
    w.add_value_length(s.head_dim)
    w.add_layer_norm_rms_eps(EPSILON)
    w.add_rope_dimension_count(s.head_dim)
    w.add_rope_freq_base(ROPE_BASE)
    w.add_vocab_size(VOCABULARY)


def add_tokenizer(w, path):
    bpe = json.loads(path.read_text())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    assert [bpe["vocab"][t] for t in tokens] == list(range(VOCABULARY))
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(tokens)
    w.add_token_types([control] + [normal] * (VOCABULARY - 1))
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]])
    w.add_bos_token_id(0)                                  # a loader may want one; it is never put before a prompt
    w.add_eos_token_id(0)
    w.add_add_bos_token(False)
    w.add_add_eos_token(False)


def export(name, out, models):
    weights = torch.load(out / f"{name}.pt")["model"]
    w = gguf.GGUFWriter(models / f"{name}.gguf", "llama")
    w.add_name(f"decodelab-{name}")
    w.add_license("MIT")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    add_shape(w, SHAPES[name])
    add_tokenizer(w, out / "tokenizer.json")
    for tensor, values in weights.items():                 # the parameters have the tensors' names already
        values = values.numpy()
        w.add_tensor(tensor, values.astype(np.float16) if values.ndim == 2 else values)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"))
    p.add_argument("--models", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "models")
    args = p.parse_args()
    args.models.mkdir(exist_ok=True)
    for name in SHAPES:
        export(name, args.out, args.models)
        print(f"{name}.gguf: {(args.models / f'{name}.gguf').stat().st_size} bytes")


if __name__ == "__main__":
    main()
