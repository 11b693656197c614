"""tokenizer.json of the two kinds in use, small enough to change every part of."""

from __future__ import annotations

import json

SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
ALPHABET = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 324))]
SPLIT = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_level() -> str:
    """GPT-2's alphabet, split by the usual pattern."""
    tokens = [*SPECIAL, *ALPHABET, "he", "ll", "hell", "Ġw"]
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    plain = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    merges = [["h", "e"], ["l", "l"], ["he", "ll"], ["Ġ", "w"]]
    steps = {"type": "Sequence", "pretokenizers": [split, plain]}
    return _document(tokens, merges, normalizer={"type": "NFC"}, pre_tokenizer=steps, decoder=plain)


def sentencepiece() -> str:
    """Llama 2's: a space before the text, bytes for what is unknown."""
    tokens = [*SPECIAL, *(f"<0x{i:02X}>" for i in range(256)), "▁", "a", "▁a", "b", "▁b", "ab"]
    merges = [["▁", "a"], ["▁", "b"], ["a", "b"]]
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]  # fmt: skip
    normalizer = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]}
    model = {"byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True}
    decoder = {"type": "Sequence", "decoders": steps}
    return _document(tokens, merges, model, normalizer=normalizer, pre_tokenizer=None, decoder=decoder)


def hostile() -> list[str]:
    """Tokenizers at which the library panics, backtracks, or writes far more than it reads."""
    return [json.dumps({**json.loads(byte_level()), **change}) for change in _CHANGES]


def _split(pattern: str) -> dict:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _replace(kind: str, pattern: str, content: str = "x") -> dict:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


_BPE = {"type": "BPE", "vocab": {"h": 0, "l": 1, "hl": 2}, "merges": [["h", "l"]]}
_BOS = {"SpecialToken": {"id": "<s>", "type_id": 0}}
_CHANGES = (
    {"pre_tokenizer": _split("(a+)+$")},
    {"pre_tokenizer": _split(r"(a+)(a+)(a+)(a+)(a+)\1\2\3b")},
    {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    {"normalizer": _replace("Regex", "(a+)+$")},
    {"normalizer": _replace("String", "")},
    {"normalizer": _replace("Regex", "")},
    {"normalizer": _replace("Regex", "(?=)")},
    {"normalizer": {"type": "Sequence", "normalizers": [_replace("String", "a", "a" * 1000)] * 3}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "BAAAAP////8AAA=="}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}},
    {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_BOS],
            "pair": [_BOS],
            "special_tokens": {},
        }
    },
    {"model": {"type": "Unigram", "unk_id": None, "vocab": [["a", -1.0]]}},
    {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["", 0.0], ["", -1.0]]}},
    {"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"a": 0}}},
    {"model": {**_BPE, "continuing_subword_prefix": "zzzz"}},
    {"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 5}},
    {"padding": {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_id": 0, "pad_token": "x"}},
    {"decoder": None},
    {"added_tokens": [{"id": 2**32 - 1, "content": "zz", "special": True}]},
)


def _document(tokens: list[str], merges: list[list[str]], model: dict | None = None, **parts: object) -> str:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{"id": i, "content": t, "special": True, **flags} for i, t in enumerate(SPECIAL)]
    bpe = {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False, "ignore_merges": False}
    vocabulary = {token: index for index, token in enumerate(tokens)}
    first = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {
        "type": "TemplateProcessing", "single": first,
        "pair": [*first, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }  # fmt: skip
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **parts}
    held = {**bpe, **(model or {}), "vocab": vocabulary, "merges": merges}
    return json.dumps({**whole, "post_processor": template, "model": held})
