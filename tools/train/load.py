"""Reads a model and its tokenizer back from GGUF, so that what is measured is the file itself."""
import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from model import Llama, Shape


def load(path):
    """(model in f32, tokenizer)."""
    reader = gguf.GGUFReader(path)
    get = lambda key: reader.get_field(key).contents()
    model = Llama(Shape(dim=get("llama.embedding_length"), ffn=get("llama.feed_forward_length"),
                        layers=get("llama.block_count"), heads=get("llama.attention.head_count"),
                        kv_heads=get("llama.attention.head_count_kv")))
    model.load_state_dict({t.name: torch.from_numpy(np.array(t.data, dtype=np.float32)) for t in reader.tensors})
    return model.eval(), tokenizer(get("tokenizer.ggml.tokens"), get("tokenizer.ggml.merges"))


def tokenizer(tokens, merges):
    pairs = [tuple(m.split(" ")) for m in merges]
    t = Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(tokens)}, merges=pairs))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(tokens[0], special=True)])
    return t
