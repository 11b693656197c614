"""AWQ and GPTQ checkpoints: settings, packed words, scales; what is accepted must be a base."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save

from kernels.dec import dequantise
from runtime.checkpoint.packed import PackedCheckpoint
from runtime.model.spec import ModelSpec
from runtime.model.weights import block_norms
from tests.fuzz import bundle
from tests.fuzz.refusal import refusals

NAME = "packed"
NAMES = ("config.json", "quant_config.json", "quantize_config.json", "model.safetensors")
N_OUT, N_IN = 16, 64
LINEAR = "model.layers.0.self_attn.q_proj"
CONFIG = {
    "model_type": "llama", "hidden_size": N_IN, "intermediate_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 2, "vocab_size": 8, "max_position_embeddings": 32,
}  # fmt: skip
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False}


def seeds(folder: Path) -> list[bytes]:
    """Both kinds, with the settings in the configuration or in the file of older tools."""
    return [
        _checkpoint(AWQ, _awq(2)),
        _checkpoint(GPTQ, _gptq(2)),
        _checkpoint({**GPTQ, "checkpoint_format": "gptq_v2", "group_size": -1}, _gptq(1)),
        _checkpoint({"w_bit": 4, "q_group_size": 64}, _awq(1), "quant_config.json"),
        _checkpoint({"bits": 4, "group_size": 128}, _gptq(1), "quantize_config.json"),
        bundle.pack(NAMES, {"config.json": json.dumps({"quantization_config": AWQ}).encode()}),
    ]


def check(data: bytes, folder: Path) -> None:
    """Open the checkpoint and read its linear as a base of a matrix of the reference's shape."""
    bundle.write(NAMES, data, folder)
    with refusals():
        packed = PackedCheckpoint(folder)
        with refusals():
            base = packed.linear(f"{LINEAR}.weight", (N_OUT, N_IN)).base(torch.ones(N_OUT))
            assert dequantise(base).shape == (N_OUT, N_IN)
        with refusals():
            spec = ModelSpec.from_config(packed.config)
            block_norms(packed, spec, 0)


def mutate(data: bytes, random: Random) -> bytes:
    """One file in the way of its kind."""
    return bundle.mutate(NAMES, data, random)


def _checkpoint(settings: dict, linear: dict[str, torch.Tensor], separate: str | None = None) -> bytes:
    norms = {
        f"model.layers.0.{name}_layernorm.weight": torch.ones(N_IN) for name in ("input", "post_attention")
    }
    tensors = {f"{LINEAR}.{name}": tensor for name, tensor in linear.items()} | norms
    config = CONFIG if separate else {**CONFIG, "quantization_config": settings}
    files = {"config.json": json.dumps(config).encode(), "model.safetensors": save(tensors)}
    if separate:
        files[separate] = json.dumps(settings).encode()
    return bundle.pack(NAMES, files)


def _awq(groups: int) -> dict[str, torch.Tensor]:
    words = torch.arange(N_IN * N_OUT // 8, dtype=torch.int32).mul(0x01234567)
    zeros = torch.full((groups, N_OUT // 8), 0x77777777, dtype=torch.int32)
    return {
        "qweight": words.view(N_IN, N_OUT // 8), "qzeros": zeros, "scales": torch.ones(groups, N_OUT).half()
    }  # fmt: skip


def _gptq(groups: int) -> dict[str, torch.Tensor]:
    index = torch.arange(N_IN, dtype=torch.int32) // (N_IN // groups)
    words = torch.arange(N_IN * N_OUT // 8, dtype=torch.int32).mul(0x01234567).view(N_IN // 8, N_OUT)
    return {**_awq(groups), "qweight": words, "g_idx": index}
