"""Hostile and damaged GGUF files: each ends in one sentence, never in another exception."""

import struct

import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Kind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError
from tests.runtime.checkpoint.tiny_gguf import SMALL, write_blocks

EMBEDDING = "model.embed_tokens.weight"
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    raw = np.arange(2 * 34, dtype=np.uint8).reshape(2, 34)
    return write_blocks(tmp_path_factory.mktemp("tiny") / "m.gguf", raw, Kind.Q8_0).read_bytes()


def read_all(path):
    """What any user of a checkpoint does; returns the error's sentence or ""."""
    try:
        checkpoint = open_checkpoint(path)
        for name in checkpoint.names():
            assert checkpoint.load(name).shape == checkpoint.shape(name)
    except DecdecError as error:
        sentence = error.sentence
    else:
        return ""
    assert path.name in sentence
    assert sentence.isprintable()
    return sentence


def test_every_prefix_is_refused(tiny, tmp_path):
    path = tmp_path / "m.gguf"
    padding = 32 - 68 % 32
    for length in range(len(tiny) - padding):
        path.write_bytes(tiny[:length])
        assert read_all(path), length
    path.write_bytes(tiny[: len(tiny) - padding])
    assert read_all(path) == ""


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bits_never_escape_as_another_exception(tiny, tmp_path, data):
    damaged = bytearray(tiny)
    for position in data.draw(st.lists(st.integers(0, len(tiny) * 8 - 1), min_size=1, max_size=4)):
        damaged[position // 8] ^= 1 << position % 8
    path = tmp_path / "m.gguf"
    path.write_bytes(damaged)
    read_all(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 400), value=st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]))
def test_absurd_numbers_anywhere_never_escape(tiny, tmp_path, position, value):
    damaged = bytearray(tiny)
    U64.pack_into(damaged, min(position, len(tiny) - 8), value)
    path = tmp_path / "m.gguf"
    path.write_bytes(damaged)
    read_all(path)


def with_table(tiny, **changes):
    """The tiny file with a field of its only tensor's entry overwritten."""
    at = tiny.index(b"token_embd.weight") + len("token_embd.weight")
    fields = {"n_dims": (U32, at), "columns": (U64, at + 4), "rows": (U64, at + 12), "kind": (U32, at + 20)}
    fields["offset"] = (U64, at + 24)
    damaged = bytearray(tiny)
    for name, value in changes.items():
        layout, place = fields[name]
        layout.pack_into(damaged, place, value)
    return bytes(damaged)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_dims": 0}, "token_embd.weight has 0 dimensions"),
        ({"n_dims": 2**31}, "token_embd.weight has 2147483648 dimensions"),
        ({"rows": 2**62}, "token_embd.weight ends at byte"),
        ({"rows": 0}, "impossible shape"),
        ({"columns": 33}, "impossible shape"),
        ({"kind": 999}, "token_embd.weight has the unknown type 999"),
        ({"kind": 24}, "token_embd.weight has the type I8"),
        ({"offset": 2**63}, "token_embd.weight ends at byte"),
        ({"offset": 7}, "not at a multiple of 32"),
    ],
)
def test_absurd_tensor_is_named(tiny, tmp_path, changes, sentence):
    path = tmp_path / "m.gguf"
    path.write_bytes(with_table(tiny, **changes))
    assert sentence in read_all(path)


@pytest.mark.parametrize(
    ("place", "layout", "value", "sentence"),
    [
        (0, U32, 0x46554746, "not a GGUF file"),
        (4, U32, 1, "GGUF version 1"),
        (4, U32, 0x03000000, "version 50331648"),
        (8, U64, 2**60, "claims 1152921504606846976 tensors"),
        (8, U64, 60, "claims 60 tensors"),
        (16, U64, 60000, "claims 60000 metadata keys"),
        (24, U64, 2**40, "metadata key 0 claims to be a text"),
        (24, U64, 30_000_000, "metadata key 0 at byte 32 needs 30000000 bytes"),
    ],
)
def test_absurd_counts_are_named(tiny, tmp_path, place, layout, value, sentence):
    damaged = bytearray(tiny)
    layout.pack_into(damaged, place, value)
    path = tmp_path / "m.gguf"
    path.write_bytes(damaged)
    assert sentence in read_all(path)


def build(entries=(), tensors=(), data=b""):
    """A GGUF from raw (key, type, bytes of the value) and raw tensor entries."""
    name = lambda text: U64.pack(len(text)) + text  # noqa: E731
    keys = b"".join(name(key) + U32.pack(kind) + value for key, kind, value in entries)
    table = b"".join(
        name(key) + U32.pack(1) + U64.pack(size) + U32.pack(0) + U64.pack(at) for key, size, at in tensors
    )
    head = b"GGUF" + U32.pack(3) + U64.pack(len(tensors)) + U64.pack(len(entries)) + keys + table
    return head + bytes(-len(head) % 32) + data


STRING, ARRAY = 8, 9


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (build([(b"a", ARRAY, U32.pack(STRING) + U64.pack(2**50))]), "a list of 1125899906842624 items"),
        (build([(b"a", ARRAY, U32.pack(4) + U64.pack(1 << 20))]), "metadata a at byte"),
        (build([(b"a", ARRAY, U32.pack(ARRAY) + U64.pack(1))]), "metadata a has the unknown type 9"),
        (build([(b"a", 77, bytes(8))]), "metadata a has the unknown type 77"),
        (build([(b"a", STRING, U64.pack(2) + b"\xff\xfe")]), "metadata a is not UTF-8"),
        (build([(b"a", 4, U32.pack(1))] * 2), "metadata a is there twice"),
        (build([(b"general.alignment", 4, U32.pack(0))]), "general.alignment is 0"),
        (build([(b"general.alignment", 4, U32.pack(48))]), "general.alignment is 48"),
        (build([(b"general.alignment", 7, b"\x01")]), "general.alignment is True"),
        (build(tensors=[(b"a", 16, 0), (b"b", 16, 32)], data=bytes(128)), "tensor b overlaps"),
        (build(tensors=[(b"a", 8, 0), (b"a", 8, 32)], data=bytes(128)), "the same name"),
        (build([(b"general.architecture", STRING, U64.pack(4) + b"rwkv")]), "architecture is rwkv"),
        (build([(b"general.architecture", 4, U32.pack(4))]), "architecture is 4"),
        (build([(b"general.architecture", STRING, U64.pack(5) + b"llama")]), "lacks llama.embedding_length"),
    ],
)
def test_odd_headers_are_named(content, sentence, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert sentence in read_all(path)


def test_deeply_wrong_but_small_header_costs_no_memory(tmp_path):
    """A list that claims four million texts is refused after what the file really holds."""
    path = tmp_path / "m.gguf"
    path.write_bytes(build([(b"a", ARRAY, U32.pack(STRING) + U64.pack(1 << 22) + bytes(80))]))
    assert "metadata a at byte" in read_all(path)


def test_unknown_tensor_is_refused(tmp_path):
    path = write_blocks(tmp_path / "m.gguf", np.zeros((2, 34), np.uint8), Kind.Q8_0)
    path.write_bytes(path.read_bytes().replace(b"token_embd.weight", b"token_embq.weight"))
    assert "no token_embd.weight" in read_all(path)


def test_git_lfs_pointer_says_what_to_do(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 98362432\n")
    assert "git lfs pull" in read_all(path)


def test_paths_that_are_no_model(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, why in [("none.gguf", "no such file"), ("none", "no such file"), ("a.txt", "neither")]:
        with pytest.raises(DecdecError, match=why):
            open_checkpoint(tmp_path / name)
    with pytest.raises(DecdecError, match=r"no config\.json"):
        open_checkpoint(tmp_path / "empty")


def test_folder_with_one_gguf_opens_it(tiny, tmp_path):
    (tmp_path / "x.gguf").write_bytes(tiny)
    assert open_checkpoint(tmp_path).config["hidden_size"] == SMALL["llama.embedding_length"]
    (tmp_path / "y.gguf").write_bytes(tiny)
    with pytest.raises(DecdecError, match=r"2 \.gguf files"):
        open_checkpoint(tmp_path)
