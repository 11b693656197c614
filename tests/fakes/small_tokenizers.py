"""Small tokenizers of the two kinds in use, trained on a few lines."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

LINES = [
    "The quick brown fox jumps over the lazy dog, user and assistant alike.",
    "naïve café über straße, 東京 is the capital of 日本, привет мир",
    "😀 👩‍👩‍👧‍👦 im_start im_end <|im_end|> system user\n\nassistant think",
] * 20
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_level() -> tokenizers.Tokenizer:
    built = tokenizers.Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=alphabet, special_tokens=CONTROL, show_progress=False
    )
    built.train_from_iterator(LINES, trainer)
    built.add_tokens([AddedToken("<think>", special=False), AddedToken("</think>", special=False)])
    built.add_tokens([AddedToken("<table>", special=False)])
    return built


def sentencepiece() -> tokenizers.Tokenizer:
    """As in Llama-2's conversion: prepended space, byte fallback, one leading space stripped."""
    built = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    built.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    built.decoder = decoders.Sequence(steps)
    bytes_ = [f"<0x{value:02X}>" for value in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False
    )
    built.train_from_iterator(["The quick brown fox", "user and assistant\n"] * 20, trainer)
    document = json.loads(built.to_str())
    # Byte tokens are vocabulary, not added tokens.
    document["added_tokens"] = [each for each in document["added_tokens"] if each["id"] < 3]
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def write_byte_level(folder: Path) -> None:
    """A model folder with a byte-level tokenizer and a ChatML template."""
    byte_level().save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    config = {"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
