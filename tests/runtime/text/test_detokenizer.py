from __future__ import annotations

import time

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import DecdecError
from runtime.text import Detokenizer, Tokenizer


@pytest.fixture(scope="module")
def byte_level(folder):
    return Tokenizer.from_folder(folder), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def metaspace(sentencepiece_folder):
    path = sentencepiece_folder / "tokenizer.json"
    return Tokenizer.from_folder(sentencepiece_folder), tokenizers.Tokenizer.from_file(str(path))


FAMILY = "👩‍👩‍👧‍👦"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\ufffd▁")) | st.lists(
    st.sampled_from([*"abc é\n", FAMILY, "😀", "東", "京", "\u200d", "🇫🇷", "é", "<|im_end|", "  "])
).map("".join)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def stream(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(tokenizer)
    return [*map(detokenizer.push, ids), detokenizer.finish()]


@given(TEXT)
@QUICK
def test_byte_level_stream_equals_full_decode_and_never_shows_half(byte_level, text):
    tokenizer, reference = byte_level
    ids = tokenizer.encode_plain(text)
    pieces = stream(tokenizer, ids)
    assert "".join(pieces) == text == reference.decode(ids)
    assert "\ufffd" not in "".join(pieces)


@given(TEXT)
@QUICK
def test_sentencepiece_stream_equals_full_decode(metaspace, text):
    tokenizer, reference = metaspace
    ids = tokenizer.encode_plain(text)
    assert "".join(stream(tokenizer, ids)) == reference.decode(ids) == text


@given(st.lists(st.integers(0, 499), max_size=40))
@QUICK
def test_any_ids_decode_as_a_whole_but_for_an_unfinished_end(byte_level, ids):
    tokenizer, reference = byte_level
    full = reference.decode(ids, skip_special_tokens=True)
    streamed = "".join(stream(tokenizer, ids))
    assert streamed in (full, full.removesuffix("\ufffd"))


def test_a_character_appears_with_its_last_byte(folder):
    tokenizer = Tokenizer.from_folder(folder)
    stand_ins = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str("😀")[0][0]
    ids = [tokenizer.id_of(character) for character in stand_ins]
    pieces = stream(tokenizer, ids)
    assert pieces == ["", "", "", "😀", ""]
    assert "".join(stream(tokenizer, ids[:3])) == ""


def test_control_tokens_are_hidden_and_think_is_not(folder):
    tokenizer = Tokenizer.from_folder(folder)
    ids = tokenizer.encode("a<|im_end|>b<think>c")
    assert "".join(stream(tokenizer, ids)) == "ab<think>c"
    assert stream(tokenizer, [10**6]) == ["", ""]


def test_quoted_control_token_is_shown_whole(folder):
    tokenizer = Tokenizer.from_folder(folder)
    assert "".join(stream(tokenizer, tokenizer.encode_plain("say <|im_end|> now"))) == "say <|im_end|> now"


def test_time_per_token_does_not_grow(folder):
    tokenizer = Tokenizer.from_folder(folder)
    ids = tokenizer.encode_plain("東京 naïve 😀 ") * 4000
    started = time.perf_counter()
    stream(tokenizer, ids)
    assert (time.perf_counter() - started) / len(ids) < 20e-6


def test_unknown_decoder_is_refused(folder, tmp_path):
    reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    reference.decoder = tokenizers.decoders.WordPiece()
    reference.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(DecdecError, match="WordPiece"):
        Detokenizer(Tokenizer.from_folder(tmp_path))


def test_the_space_before_a_word_stays_where_the_text_goes_on(sentencepiece_folder):
    tokenizer = Tokenizer.from_folder(sentencepiece_folder)
    ids = tokenizer.encode("quick")
    assert "".join(map(Detokenizer(tokenizer).push, ids)) == "quick"
    assert "".join(map(Detokenizer(tokenizer, continues=True).push, ids)) == " quick"
