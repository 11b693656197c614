"""GGUF files, as `import file.gguf` takes them: header, configuration, tokenizer, every tensor."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES
from gguf.constants import GGMLQuantizationType as Kind

from runtime.checkpoint import open_checkpoint
from runtime.checkpoint.gguf_blocks import BLOCKS, PLAIN
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_places
from runtime.prepare.sizes import staging_bytes
from runtime.prepare.text import write_text
from runtime.progress import JobContext
from runtime.sources.local import GgufSource
from tests.fuzz.gguf_files import mutate_gguf
from tests.fuzz.refusal import refusals

NAME = "gguf"
MUTATIONS = 40
mutate = mutate_gguf

ALPHABET = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 324))]
PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "▁a", "b", "▁", "ab"]
OWN = {
    "block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 64,
    "attention.head_count": 2, "attention.head_count_kv": 1, "attention.layer_norm_rms_epsilon": 1e-5,
}  # fmt: skip
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 32}
SHAPES = {
    "token_embd": (300, 32), "blk.0.attn_q": (32, 32), "blk.0.attn_k": (16, 32), "blk.0.attn_v": (16, 32),
    "blk.0.attn_output": (32, 32), "blk.0.ffn_gate": (64, 32), "blk.0.ffn_up": (64, 32),
    "blk.0.ffn_down": (32, 64), "output_norm": (32,),
}  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """A file of each family and tokenizer, and one of each storage type."""
    return [
        *(_file(folder, arch) for arch in ("llama", "qwen2", "qwen3", "phi3", "gemma3")),
        _file(folder, "llama", tables={"rope_freqs.weight": np.ones(8, np.float32)}),
        _file(folder, "llama", own=YARN),
        _file(
            folder,
            "phi3",
            tables={f"rope_factors_{n}.weight": np.ones(8, np.float32) for n in ("long", "short")},
        ),
        _file(folder, "llama", shapes={"blk.0.attn_k": (31, 32)}),
        *(_blocks(folder, kind) for kind in sorted({*BLOCKS, *PLAIN}, key=int)),
    ]


def check(data: bytes, folder: Path) -> None:
    """Import as far as every tensor is read and the text side is written and tried."""
    path, made = folder / "m.gguf", folder / "made"
    path.write_bytes(data)
    with refusals():
        checkpoint = open_checkpoint(GgufSource(path).fetch(JobContext.silent()))
        for name in checkpoint.names():
            with refusals():
                assert checkpoint.load(name).shape == checkpoint.shape(name)
        with refusals():
            write_text(checkpoint, made)
        spec = ModelSpec.from_config(checkpoint.config)
        staging_bytes(checkpoint, spec, [])
        linear_places(spec, checkpoint.shape)


def _file(
    folder: Path, arch: str, own: dict | None = None, tables: dict | None = None, shapes: dict | None = None
) -> bytes:
    writer = gguf.GGUFWriter(folder / "m.gguf", arch)
    extra = {"attention.key_length": 16, "attention.sliding_window": 16} if arch == "gemma3" else {}
    for key, value in {**OWN, **extra, **(own or {})}.items():
        _add(writer, f"{arch}.{key}", value)
    _tokenizer(writer, pieces=arch in ("gemma3", "phi3"))
    for name, shape in {**SHAPES, **(shapes or {})}.items():
        writer.add_tensor(f"{name}.weight", np.ones(shape, np.float16))
    for name, table in (tables or {}).items():
        writer.add_tensor(name, table)
    return _finished(writer, folder)


def _blocks(folder: Path, kind: Kind) -> bytes:
    """A model of two rows of blocks of a storage type."""
    size, n_bytes = GGML_QUANT_SIZES[kind]
    writer = gguf.GGUFWriter(folder / "m.gguf", "llama")
    count = max(2, 32 // size)
    for key, value in {**OWN, "embedding_length": size * count}.items():
        _add(writer, f"llama.{key}", value)
    raw = np.zeros((2, n_bytes * count), np.uint8)
    writer.add_tensor("token_embd.weight", raw, raw_dtype=kind)
    return _finished(writer, folder)


def _tokenizer(writer: gguf.GGUFWriter, pieces: bool) -> None:
    tokens = PIECES if pieces else ["<|endoftext|>", "<|im_end|>", *ALPHABET, "ab", "Ġa", "Ġab"]
    n_control = 3 if pieces else 2
    writer.add_tokenizer_model("llama" if pieces else "gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * n_control + [1] * (len(tokens) - n_control))
    if pieces:
        writer.add_token_scores([-float(i) for i in range(len(tokens))])
    else:
        writer.add_token_merges(["a b", "Ġ a", "Ġa b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}")
    writer.add_float32("general.sampling.temp", 0.5)
    writer.add_uint32("general.sampling.top_k", 20)


def _add(writer: gguf.GGUFWriter, key: str, value: int | float | str) -> None:
    kinds = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    kinds[type(value)](key, value)


def _finished(writer: gguf.GGUFWriter, folder: Path) -> bytes:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (folder / "m.gguf").read_bytes()
