"""The tokenizer: byte-level BPE, the digits one by one, trained on corpus.py."""
import random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import corpus
from model import VOCABULARY

END = "<|end|>"


def train():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    r = random.Random("vocabulary")
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator((corpus.text(corpus.document(r)) for _ in range(20000)), trainer)
    return t


def load(path):
    """The tokenizer in this file; trained and written there first if there is none."""
    if not path.exists():
        train().save(str(path))
    return Tokenizer.from_file(str(path))
