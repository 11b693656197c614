from __future__ import annotations

import json

import pytest
import tokenizers

from runtime.errors import DecdecError
from runtime.text import Tokenizer


def test_template_text_has_control_tokens_and_plain_text_has_none(folder):
    tokenizer = Tokenizer.from_folder(folder)
    text = "<|im_start|>user\nhello<|im_end|>"
    ids = tokenizer.encode(text)
    assert ids == tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids
    assert ids[0] == tokenizer.control["<|im_start|>"]
    plain = tokenizer.encode_plain(text)
    assert not set(plain) & set(tokenizer.control.values())
    assert len(plain) > len(ids)


def test_only_tokens_the_template_writes_or_piped_ones_steer(folder):
    tokenizer = Tokenizer.from_folder(folder)
    assert set(tokenizer.control) == {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
    with_think = Tokenizer(folder / "tokenizer.json", "... '<think>' ...")
    assert "<think>" in with_think.control
    assert with_think.id_of("<table>") in with_think.encode_plain("a <table> b")
    assert with_think.id_of("<think>") not in with_think.encode_plain("a <think> b")
    assert with_think.id_of("<think>") in with_think.encode("a <think> b")


def test_inner_piece_has_no_space_of_a_first_word(sentencepiece_folder):
    tokenizer = Tokenizer.from_folder(sentencepiece_folder)
    assert tokenizer.token_of(tokenizer.encode("quick")[0]).startswith("▁")
    for inner in tokenizer.encode_inner(["quick", "quick"], plain=True):
        assert "".join(map(tokenizer.token_of, inner)) == "quick"
    assert tokenizer.encode_inner([], plain=True) == []


def test_first_ids_are_what_the_post_processor_adds(folder, tmp_path):
    assert Tokenizer.from_folder(folder).first_ids == ()
    document = json.loads((folder / "tokenizer.json").read_text())
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.first_ids == (1,)
    assert 1 not in tokenizer.encode("hello")


DECODER = b'"decoder": {"type": "ByteLevel"}'
DAMAGED = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b'{"added_tokens": 7}',
    b'{"added_tokens": [{"content": 3}], %s}' % DECODER,
    b'{"model": {"type": "BPE", "vocab": 4}, %s}' % DECODER,
]


@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_file_is_one_sentence(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(DecdecError, match=r"tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)


def test_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(DecdecError, match="No such file"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "sentencepiece_folder"])
@pytest.mark.parametrize("text", ["the quick brown fox " * 50, " " * 500, "\n" * 500, "é東🇩🇪" * 50])
def test_no_token_stands_for_more_than_the_longest(kind, text, request):
    tokenizer = Tokenizer.from_folder(request.getfixturevalue(kind))
    assert len(text) <= tokenizer.longest_token * len(tokenizer.encode(text))
    names = tokenizers.Tokenizer.from_file(str(request.getfixturevalue(kind) / "tokenizer.json")).get_vocab()
    assert tokenizer.longest_token == len(max(names, key=len))
