"""Writes a random model of a given shape, for measuring speed alone: weights beyond every cache.

    python3 tests/peers/random_model.py VOCAB.gguf OUT.gguf Q4_0|Q8_0 [--small]

The shape is that of a 1.1B Llama: 22 layers, 2048 wide, feed-forward 5632, 32 query and 4 KV heads,
32,000 tokens. The tokenizer is the first 32,000 tokens of VOCAB.gguf. --small: 2 layers, to try it.
"""
import argparse

import gguf
import numpy

LAYERS, DIM, FFN, HEADS, KV_HEADS, VOCAB = 22, 2048, 5632, 32, 4, 32000


def random_blocks(rng, dtype, rows, cols):
    """Rows of blocks with random codes and one ordinary scale."""
    size, block_bytes = gguf.GGML_QUANT_SIZES[dtype]
    blocks = rng.integers(0, 256, (rows, cols // size, block_bytes), dtype=numpy.uint8)
    spread = {gguf.GGMLQuantizationType.Q4_0: 5.0, gguf.GGMLQuantizationType.Q8_0: 74.0}[dtype]
    scale = numpy.float16(1 / (spread * cols ** 0.5))       # so that a layer keeps its input's size
    blocks[:, :, :2] = numpy.frombuffer(scale.tobytes(), numpy.uint8)
    return blocks.reshape(rows, -1)


def copy_vocabulary(reader, writer):
    def contents(key):
        return reader.get_field(key).contents()
    tokens = contents("tokenizer.ggml.tokens")[:VOCAB]
    known = set(tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(contents("tokenizer.ggml.pre"))
    writer.add_token_list(tokens)
    writer.add_token_types(contents("tokenizer.ggml.token_type")[:VOCAB])
    writer.add_token_merges([m for m in contents("tokenizer.ggml.merges")
                             if m.replace(" ", "", 1) in known])
    writer.add_bos_token_id(contents("tokenizer.ggml.bos_token_id"))
    writer.add_eos_token_id(contents("tokenizer.ggml.eos_token_id"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabulary")
    parser.add_argument("out")
    parser.add_argument("dtype", choices=("Q4_0", "Q8_0"))
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    dtype, rng = gguf.GGMLQuantizationType[args.dtype], numpy.random.default_rng(1)
    layers = 2 if args.small else LAYERS
    writer = gguf.GGUFWriter(args.out, "llama")
    writer.add_name("random 1.1B shape")
    writer.add_block_count(layers)
    writer.add_context_length(2048)
    writer.add_embedding_length(DIM)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(DIM // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    copy_vocabulary(gguf.GGUFReader(args.vocabulary), writer)

    def matrix(name, rows, cols):
        writer.add_tensor(name, random_blocks(rng, dtype, rows, cols), raw_dtype=dtype)

    matrix("token_embd.weight", VOCAB, DIM)
    matrix("output.weight", VOCAB, DIM)
    writer.add_tensor("output_norm.weight", numpy.ones(DIM, numpy.float32))
    kv = DIM // HEADS * KV_HEADS
    for i in range(layers):
        for name, rows, cols in (("attn_q", DIM, DIM), ("attn_k", kv, DIM), ("attn_v", kv, DIM),
                                 ("attn_output", DIM, DIM), ("ffn_gate", FFN, DIM),
                                 ("ffn_up", FFN, DIM), ("ffn_down", DIM, FFN)):
            matrix(f"blk.{i}.{name}.weight", rows, cols)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", numpy.ones(DIM, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
