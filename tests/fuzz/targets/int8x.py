"""INT8-X folders: every stream decoded by the compiled loops and by the reference, then a token computed."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import torch

from kernels.int8x import AdaptiveStreams, Scales, adaptive_reference, reference
from runtime.engine.cpu import CpuEngine
from runtime.engine.shapes import check_int8x
from runtime.engine.slider import TunedPath
from runtime.int8x import CodecChoice, Int8xReader, Int8xWriter
from runtime.int8x.entries import AdaptiveEntry
from runtime.int8x.tally import Tally
from runtime.int8x.verifying import comparison, survey
from runtime.model.quantised import assemble, int8_block, int8_tables
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from tests.fuzz.int8x_folders import mutate, pack, write
from tests.fuzz.refusal import refusals

NAME = "int8x"
MUTATIONS = 40
__all__ = ["NAME", "check", "mutate", "seeds"]

HIDDEN, FEED, VOCABULARY, CONTEXT = 32, 48, 40, 8
# Counting symbols takes longer than everything else; one input in so many is enough.
SURVEYED = 8
CONFIG = {
    "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FEED, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "vocab_size": VOCABULARY,
    "max_position_embeddings": CONTEXT, "tie_word_embeddings": True, "rms_norm_eps": 1e-5,
}  # fmt: skip
BLOCK = "model.layers.0."
MATRICES = {
    "model.embed_tokens": (VOCABULARY, HIDDEN), f"{BLOCK}self_attn.q_proj": (32, HIDDEN),
    f"{BLOCK}self_attn.k_proj": (16, HIDDEN), f"{BLOCK}self_attn.v_proj": (16, HIDDEN),
    f"{BLOCK}self_attn.o_proj": (HIDDEN, 32), f"{BLOCK}mlp.gate_proj": (FEED, HIDDEN),
    f"{BLOCK}mlp.up_proj": (FEED, HIDDEN), f"{BLOCK}mlp.down_proj": (HIDDEN, FEED),
}  # fmt: skip
VECTORS = {
    "model.norm": HIDDEN, f"{BLOCK}input_layernorm": HIDDEN, f"{BLOCK}post_attention_layernorm": HIDDEN
}  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """A model of each codec, and of each kind of scales."""
    return [
        _model(folder / "a", CodecChoice("adaptive"), "aware"),
        _model(folder / "b", CodecChoice("bitmap", (3, 5, 8)), "row"),
        _model(folder / "c", CodecChoice("bitmap", (2, 3, 4, 6, 8)), "tensor"),
        _model(folder / "d", CodecChoice("raw"), "tensor"),
    ]


def check(data: bytes, folder: Path) -> None:
    """Read the model as loading, verifying and inspecting do; what is accepted must decode as defined."""
    write(data, folder)
    with refusals():
        reader = Int8xReader(folder)
        coded = set(reader.coded_names())
        for name in reader.names():
            with refusals():
                _compare(reader, name) if name in coded else reader.load(name)
        if zlib.crc32(data) % SURVEYED == 0:
            with refusals():
                survey(reader, JobContext.silent(), "verify", comparison(reader, None))
        _answer(reader)


def _compare(reader: Int8xReader, name: str) -> None:
    entry, parts = reader.coded_entry(name), reader.parts(name)
    q = reader.quantised(name).q
    reader.scales(name)
    Tally().add(entry, q, parts)
    if isinstance(entry, AdaptiveEntry):
        streams: AdaptiveStreams = entry.streams(parts)
        again = adaptive_reference.decode(streams)
    else:
        streams = entry.streams(parts) if hasattr(entry, "streams") else None
        again = q if streams is None else reference.decode(streams).reshape(entry.shape)
    assert torch.equal(again, q)


def _answer(reader: Int8xReader) -> None:
    """Load the model as the engine on the CPU does and compute two tokens."""
    spec = ModelSpec.from_config(reader.config)
    check_int8x(reader, spec)
    tables = int8_tables(reader, spec)
    layers = [dict(int8_block(reader, spec, index)) for index in range(len(spec.layers))]
    decoder = assemble(reader, spec, layers, tables)
    engine = CpuEngine(decoder, tables.embedding, tables.head, CONTEXT, TunedPath([]))
    engine.prefill([0, spec.vocab_size - 1], lambda: None)
    engine.decode(spec.vocab_size - 1)


def _model(folder: Path, choice: CodecChoice, granularity: str) -> bytes:
    generator = torch.Generator().manual_seed(5)
    aware = granularity == "aware"
    writer = Int8xWriter(folder, "row" if aware else granularity, choice=choice, source="fuzz")
    for name, shape in MATRICES.items():
        weight = torch.randn(shape, generator=generator)
        weight *= torch.exp(torch.randn(shape, generator=generator))
        writer.add(f"{name}.weight", weight, _aware(*shape) if aware and "layers" in name else None)
    for name, size in VECTORS.items():
        writer.add_plain(f"{name}.weight", torch.ones(size, dtype=torch.bfloat16))
    config = {**CONFIG, "quantization_config": writer.finish()}
    (folder / "config.json").write_text(json.dumps(config))
    return pack(folder)


def _aware(n_out: int, n_in: int) -> Scales:
    rows, columns = (torch.full((n,), 128, dtype=torch.uint8) for n in (n_out, n_in))
    return Scales("aware", torch.full((1,), 0.05), rows, columns)
