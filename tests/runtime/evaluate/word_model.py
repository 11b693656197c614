"""A tiny model on disk whose tokenizer knows the words w0 … w96."""

import json

from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = 97


def save_word_model(model, path):
    """Write a transformers model with its tokenizer; gives the folder."""
    model.save_pretrained(path)
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "w1"}))
    return path


def write_words(tokens, path):
    """Write the text that becomes these token ids; gives the file."""
    path.write_text(" ".join(f"w{i}" for i in tokens))
    return path
