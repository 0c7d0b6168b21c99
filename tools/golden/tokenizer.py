"""Makes tests/golden/tokenizer: what Hugging Face's tokenizers library does, for lab::Tokenizer to be compared with.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install -r requirements.txt
    /tmp/golden/bin/python tokenizer.py [--smollm2 SmolLM2-135M-Instruct.Q4_1.gguf]

The small vocabulary (tokenizer.json) is trained once, from text that tokenizer_strings.py makes, and then kept.
"""
import argparse
import json
import pathlib
import unicodedata

import jinja2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import tokenizer_strings

OUT = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "tokenizer"
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<think>", "</think>", "<think", "→→"]
UNREACHABLE = ["ĠNÃºÃ±ez", "xyzzy"]                         # in the vocabulary, but no merge makes them
MISSING = ["j", "X", "Ą", "â"]                             # bytes (04 is Ą, E2 is â) that the reduced vocabulary lacks
LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
TEMPLATES = {
    "default": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
               "{{ '<|im_start|>system\nYou are a small test.<|im_end|>\n' }}{% endif %}"
               "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "escaped": "{%- if messages[0]['role'] == 'system' %}\n    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
               "{%- else %}\n    {{- '<|im_start|>system\\nYou\\'re a \"test\".<|im_end|>\\n' }}\n{%- endif %}\n"
               "{%- for message in messages %}\n    {%- if not (loop.first and message.role == 'system') %}\n"
               "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
               "    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n",
    "none": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
}
CHATS = [
    [("user", "Hello")],
    [("system", "Be brief."), ("user", "What is 2+2?")],
    [("user", "Hi"), ("assistant", "Hello!\n"), ("user", "\n\nAnd  now?  ")],
    [("system", ""), ("user", "")],
    [("user", "<think>no</think> 漢字 👩‍👩‍👧‍👦 \r\n\r\n"), ("assistant", "  ")],
]


def pre_tokenizer(name):
    p = pre_tokenizers
    if name == "gpt-2":
        return p.ByteLevel(add_prefix_space=False)
    if name == "smollm":
        return p.Sequence([p.Digits(individual_digits=True), p.ByteLevel(add_prefix_space=False)])
    regex = LLAMA.replace("DIGITS", "{1,3}" if name == "llama-bpe" else "")
    return p.Sequence([p.Split(Regex(regex), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)])


NAMES = ["gpt-2", "smollm", "llama-bpe", "qwen2"]


def train(path):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizer("gpt-2")
    t.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(tokenizer_strings.training_text(), trainers.BpeTrainer(
        vocab_size=3000, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False))
    data = json.loads(t.to_str())
    vocab = data["model"]["vocab"]
    for token in UNREACHABLE:
        assert token not in vocab
        vocab[token] = len(vocab)
    for content in USER_DEFINED:
        data["added_tokens"].append({"id": len(vocab) + len(data["added_tokens"]) - len(CONTROL), "content": content, "single_word": False,
                                     "lstrip": False, "rstrip": False, "normalized": False, "special": False})
    path.write_text(json.dumps(data, ensure_ascii=True, separators=(",", ":")) + "\n")


def fixture(name, missing=()):
    data = json.loads((OUT / "tokenizer.json").read_text())
    model, has = data["model"], lambda token: any(m in token for m in missing)
    model["ignore_merges"] = name == "llama-bpe"
    special = set(CONTROL)
    # A gap in the ids would make the library number the added tokens anew.
    model["vocab"] = {t if t in special or not has(t) else f"[PAD{i}]": i for t, i in model["vocab"].items()}
    model["merges"] = [m for m in model["merges"] if not has(m[0]) and not has(m[1])]
    t = Tokenizer.from_str(json.dumps(data))
    t.pre_tokenizer = pre_tokenizer(name)
    return t


def smollm2(path):
    import gguf
    reader = gguf.GGUFReader(path)

    def value(key):
        return reader.fields[key].contents()
    tokens, types = value("tokenizer.ggml.tokens"), value("tokenizer.ggml.token_type")
    merges = [tuple(m.split(" ")) for m in value("tokenizer.ggml.merges")]
    t = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges))
    t.pre_tokenizer = pre_tokenizer("smollm")
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(text, normalized=False) for text, kind in zip(tokens, types) if kind == 3])
    return t, value("tokenizer.chat_template")


def encode(t, texts, parse):
    t.encode_special_tokens = not parse                   # the library's name is for the opposite of what it does to control tokens
    return [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]


def lines(rows):
    return "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n"


def golden(t, texts):
    """The ids of each text; and of those that hold control tokens, by index, also with them parsed."""
    plain, parsed = encode(t, texts, False), encode(t, texts, True)
    differing = [[i, parsed[i]] for i in range(len(texts)) if parsed[i] != plain[i]]
    return '{"as_text":' + lines(plain) + ',"parse":' + lines(differing) + "}\n"


def pieces(name, texts):
    """The lengths, in bytes, of the pre-tokens: one letter of the alphabet stands for one byte."""
    return lines([[len(piece) for piece, _ in pre_tokenizer(name).pre_tokenize_str(text)] for text in texts])


def classes():
    """Ranges [first, last, class] of the assigned characters as the library's regular expressions see them."""
    tests = {k: pre_tokenizers.Split(Regex(v), "removed") for k, v in (("L", r"\p{L}"), ("N", r"\p{N}"), ("S", r"\s"))}
    ranges = []
    for c in range(0x110000):
        if unicodedata.category(chr(c)) in ("Cn", "Cs"):
            continue
        kind = next((k for k, split in tests.items() if not split.pre_tokenize_str(chr(c))), "P")
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == kind:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, kind])
    return "[" + ",\n".join(",".join(json.dumps(x, separators=(",", ":")) for x in ranges[i:i + 8]) for i in range(0, len(ranges), 8)) + "]\n"


def chats(t, templates):
    rows = []
    for name, source in templates.items():
        template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(source)
        for chat in CHATS:
            messages = [{"role": role, "content": content} for role, content in chat]
            for prompt in (False, True):
                text = template.render(messages=messages, add_generation_prompt=prompt)
                rows.append({"template": name, "messages": messages, "add_generation_prompt": prompt, "ids": encode(t, [text], True)[0]})
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--smollm2", type=pathlib.Path)
    args = p.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if not (OUT / "tokenizer.json").exists():
        train(OUT / "tokenizer.json")
    texts = tokenizer_strings.strings()
    (OUT / "strings.json").write_text(lines(texts))
    (OUT / "utf8.json").write_text(lines([[b.hex(), b.decode("utf-8", errors="replace")] for b in tokenizer_strings.broken_utf8()]))
    (OUT / "classes.json").write_text(classes())
    for name in NAMES:
        (OUT / f"ids_{name}.json").write_text(golden(fixture(name), texts))
        (OUT / f"pieces_{name}.json").write_text(pieces(name, texts))
    (OUT / "ids_missing_bytes.json").write_text(golden(fixture("smollm", MISSING), texts))
    (OUT / "chats.json").write_text(json.dumps({"templates": TEMPLATES}, indent=0)[:-2] + ',\n"chats":' +
                                    lines(chats(fixture("smollm"), TEMPLATES)) + "}\n")
    if args.smollm2:
        t, template = smollm2(args.smollm2)
        (OUT / "ids_smollm2.json").write_text(golden(t, texts))
        (OUT / "chats_smollm2.json").write_text(lines(chats(t, {"smollm2": template})))
    print(len(texts), "strings,", sum(f.stat().st_size for f in OUT.iterdir()), "bytes")


if __name__ == "__main__":
    main()
