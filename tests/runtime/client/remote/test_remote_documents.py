"""What servers say, and what is read from it."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.client.remote.documents import (
    Figures,
    Piece,
    RemoteModel,
    Usage,
    read_context,
    read_error,
    read_models,
    read_piece,
    whole,
)
from runtime.errors import DecdecError
from runtime.protocol import KChunk

NAMES = [
    *("choices", "delta", "message", "content", "reasoning", "finish_reason", "usage", "prompt_tokens"),
    *("decdec", "k_chunk", "error", "data", "models", "id", "meta", "n_ctx", "detail", "text"),
    "default_generation_settings",
]


def delta(finish=None, **fields):
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("document", "piece"),
    [
        (delta(content="Hi"), Piece("Hi")),
        (delta(role="assistant", content=None), Piece()),
        (delta(finish="length"), Piece(finish_reason="length")),
        (delta(reasoning_content="hm"), Piece(reasoning="hm")),
        (delta(reasoning="hm", content=""), Piece(reasoning="hm")),
        (delta(reasoning="hm", reasoning_content="hm"), Piece(reasoning="hm")),
        (delta(refusal="I will not"), Piece("I will not")),
        (delta(content=[{"type": "text", "text": "a"}, {"type": "image"}, "b", {"text": 3}]), Piece("a")),
        (delta(content={"text": "a"}), Piece()),
        (delta(tool_calls=[{"id": 1}]), Piece()),
        ({"choices": [{"message": {"content": "All"}, "finish_reason": "stop"}]}, Piece("All", "", "stop")),
        ({"choices": []}, Piece()),
        ({"choices": None, "error": None}, Piece()),
        ({"error": {"message": "CUDA out of\nmemory"}}, Piece(failure="CUDA out of memory")),
        ({"error": "no"}, Piece(failure="no")),
        ({"error": {}}, Piece(failure="it did not say why")),
    ],
)
def test_pieces(document, piece):
    assert read_piece(json.dumps(document)) == piece


@pytest.mark.parametrize(
    ("given", "usage"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(7, 3)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(7, 0, 5)),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}, Usage(0, 9, 0, 4)),
        ({"prompt_tokens": -1, "completion_tokens": "3", "prompt_tokens_details": 4}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": 1e300}, Usage()),
        ("seven", None),
        (None, None),
    ],
)
def test_counts_are_taken_where_they_are_counts(given, usage):
    assert read_piece(json.dumps({"choices": [], "usage": given})).usage == usage


def test_figures_of_our_own_server_are_read_and_anything_else_is_not():
    figures = {"slowdown_target_pct": 5.0, "k_chunk": {"qkv": 8}, "dropped_messages": 2, "base": "awq4"}
    document = delta(finish="stop") | {"decdec": figures}
    assert read_piece(json.dumps(document)).figures == Figures(5.0, None, KChunk(8), 0, 2)
    for other in ({"k_chunk": 3}, "yes", [], None):
        assert read_piece(json.dumps(document | {"decdec": other})).figures is None


def test_the_end_is_no_json():
    assert read_piece("[DONE]") == Piece(last=True)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "nonsense",
        "[1]",
        '{"choices": 3}',
        '{"choices": [{"delta": "x"}]}',
        "[" * 100_000,
        "1" * 6000,
    ],
)
def test_what_is_no_completion_is_one_sentence(data):
    with pytest.raises(DecdecError, match="something unreadable: it is no chat completion"):
        read_piece(data)


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_whatever_is_sent_is_read_or_refused_in_one_sentence(document):
    body = json.dumps(document).encode()
    for read in (read_piece, read_models):
        with contextlib.suppress(DecdecError):
            read(body)
    assert isinstance(read_error(body), str)
    assert read_context(body) >= 0


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        ({"id": "m", "max_model_len": 8192}, RemoteModel("m", 8192)),
        (
            {"id": "m", "meta": {"n_ctx_train": 4096}, "owned_by": "llamacpp"},
            RemoteModel("m", 4096, "llamacpp"),
        ),
        ({"id": "m", "meta": {"n_ctx_train": 4096, "n_ctx": 512}}, RemoteModel("m", 512)),
        ({"id": "m", "context_length": 131072}, RemoteModel("m", 131072)),
        ({"id": "m", "max_model_len": "much", "meta": []}, RemoteModel("m")),
        ({"id": "m", "max_model_len": -5, "owned_by": 3}, RemoteModel("m")),
        ({"id": "m", "decdec": {"context_limit": 64, "loaded": True}}, RemoteModel("m", 64, "", True)),
        ({"id": "m", "decdec": {"context_limit": None, "loaded": False}}, RemoteModel("m")),
        ({"id": "m", "status": {"value": "loaded"}}, RemoteModel("m", loaded=True)),
        ({"id": "m", "status": {"value": "unloaded"}, "decdec": 3}, RemoteModel("m")),
        ({"name": "m"}, RemoteModel("m")),
        ({"id": ""}, None),
        ({"id": 3}, None),
        ({"id": "x" * 301}, None),
        ({}, None),
    ],
)
def test_models(entry, model):
    listed = read_models(json.dumps({"data": [entry]}).encode())
    assert listed == ((model,) if model else ())


def test_a_list_under_another_name_is_read_and_an_endless_one_is_cut():
    assert read_models(b'{"models": [{"name": "m"}]}') == (RemoteModel("m"),)
    many = json.dumps({"data": [{"id": str(i)} for i in range(6000)]}).encode()
    assert len(read_models(many)) == 5000


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": {"id": "m"}}', b'{"data": ["m"]}', b"\xff"])
def test_what_is_no_list_is_one_sentence(body):
    with pytest.raises(DecdecError, match="it is no list of models"):
        read_models(body)


@pytest.mark.parametrize(
    ("body", "context"),
    [
        (b'{"default_generation_settings": {"n_ctx": 512}}', 512),
        (b'{"default_generation_settings": {"n_ctx": "many"}}', 0),
        (b'{"default_generation_settings": 3}', 0),
        (b"[]", 0),
        (b"<html>", 0),
        (b"\xff", 0),
    ],
)
def test_llama_cpps_context(body, context):
    assert read_context(body) == context


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no such model", "code": 404}}', "no such model"),
        (b'{"error": "no such model"}', "no such model"),
        (
            b'{"detail": [{"loc": ["body"], "msg": "field required"}, {"msg": "too long"}]}',
            "field required; too long",
        ),
        (b'{"object": "error", "message": "bad\\n  thing"}', "bad thing"),
        (b'{"error": {"error": {"error": {"error": {"error": {"error": "deep"}}}}}}', ""),
        (b"plain words", "plain words"),
        (b"<html><h1>Bad gateway</h1></html>", "its answer is a web page"),
        (b"", ""),
        (b"{}", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_refusals(body, said):
    assert read_error(body) == said


@pytest.mark.parametrize(
    ("text", "ready", "held"),
    [
        ("ab", "ab", ""),
        ("", "", ""),
        ("a\ud83d", "a", "\ud83d"),
        ("\ud83d\ude00!", "\U0001f600!", ""),
        ("\ude00", "\ufffd", ""),
        ("\ud83da", "\ufffda", ""),
    ],
)
def test_half_characters_wait_for_their_other_half(text, ready, held):
    assert whole(text) == (ready, held)
