"""Tokenizer files that make the library panic, hang or grow are refused in a sentence."""

import json

import pytest

from runtime.errors import DecdecError
from runtime.text import Tokenizer, backend
from tests.fuzz.small_tokenizers import byte_level, hostile

TEXT = "hello <|im_end|> " + "a" * 300 + "!" + " " * 300


def written(folder, document):
    (folder / "tokenizer.json").write_text(document)
    return folder


def split_at(pattern):
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return json.dumps({**json.loads(byte_level()), "pre_tokenizer": split})


# The first two and the fourth backtrack, which takes longer than all others together.
@pytest.mark.parametrize("number", sorted({*range(len(hostile()))} - {0, 1, 3}))
def test_whatever_the_library_does_is_one_sentence(tmp_path, number):
    folder, refused = written(tmp_path, hostile()[number]), ""
    try:
        tokenizer = Tokenizer.from_folder(folder)
        ids = [*tokenizer.encode(TEXT), *tokenizer.first_ids]
    except DecdecError as error:
        refused, ids = error.sentence, []
    assert "\n" not in refused
    assert refused or ids


def test_a_panic_is_refused_and_not_a_base_exception(tmp_path):
    tokenizer = Tokenizer.from_folder(written(tmp_path, split_at("(a+)+$")))
    with pytest.raises(DecdecError, match="retry-limit"):
        tokenizer.encode(TEXT)


def test_a_pattern_that_backtracks_for_long_is_left_behind_and_not_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(backend, "CHARACTERS_PER_SECOND", 10**9)
    tokenizer = Tokenizer.from_folder(written(tmp_path, split_at("a.*a.*z")))
    with pytest.raises(DecdecError, match="absurdly long"):
        tokenizer.encode("a" * 700)
    with pytest.raises(DecdecError, match="absurdly long"):
        tokenizer.encode("a short text that would be no trouble")
    assert tokenizer.encode("hell")


def test_long_texts_give_the_same_ids_as_their_short_parts(folder):
    tokenizer = Tokenizer.from_folder(folder)
    line = "quick brown fox\n"
    assert tokenizer.encode(line * 50) == tokenizer.encode(line) * 50


@pytest.mark.parametrize("count", [1, 3])
def test_replacements_that_make_much_out_of_little_are_refused(tmp_path, count):
    replace = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 65 if count == 1 else "a" * 5}
    document = {
        **json.loads(byte_level()),
        "normalizer": {"type": "Sequence", "normalizers": [replace] * count},
    }
    with pytest.raises(DecdecError, match="64 times longer"):
        Tokenizer.from_folder(written(tmp_path, json.dumps(document)))


def test_more_added_tokens_than_can_be_looked_for_are_refused(tmp_path):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": 1000 + i, "content": f"<t{i}>", **flags} for i in range(5000)]
    folder = written(tmp_path, json.dumps({**json.loads(byte_level()), "added_tokens": added}))
    few = Tokenizer(folder / "tokenizer.json", "x" * 1000)
    assert few.encode("<t7>") == [few.control["<t7>"]]
    with pytest.raises(DecdecError, match="too many for a template"):
        Tokenizer(folder / "tokenizer.json", "x" * 300_000)
