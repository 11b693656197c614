"""Files of a low-bit base: forms, codes, residuals, profiles; what is accepted must compute."""

from __future__ import annotations

from pathlib import Path
from random import Random

import torch

from kernels.dec import TableCodes, quantise_rtn
from kernels.int8x import Quantised, absmax_scales, quantise
from runtime import lowbit
from runtime.engine.cpu_loading import usable_layer
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.compensated import Compensated
from runtime.layers.correction import CorrectionStack
from runtime.lowbit.blocks import has_columns, linear_size, write_block
from runtime.lowbit.forms import stored_form
from runtime.lowbit.weights import BaseWeights, LowBitWeights, with_residual
from tests.fuzz.mutations import mutate_bytes, odd_number
from tests.fuzz.refusal import refusals
from tests.fuzz.safetensors_files import as_file, mutate_safetensors, split

NAME = "lowbit"
BASE, BLOCK = "awq4", 0
SHAPES = {"qkv": (48, 32), "o": (32, 32), "gate_up": (64, 32), "down": (32, 64)}
FORMS = ("groups 4 128", "groups 3 32", "table 4", "groups 4 8", "table 3", "groups 4 65536", "planes")


def seeds(folder: Path) -> list[bytes]:
    """A block of each form of base."""
    made = [_block(folder, form) for form in ("groups 4 128", "groups 3 32", "table 4", "planes")]
    return [*made, _without_sums(made[0]), _without_sums(made[3]), as_file("a" * 5000, b"")]


def check(data: bytes, folder: Path) -> None:
    """Read the block as both engines do, then one token through every linear, all channels corrected."""
    path = lowbit.blocks.block_path(folder, BASE, BLOCK)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with refusals(), lowbit.open_block(folder, BASE, BLOCK) as file:
        for kind in LINEAR_KINDS:
            has_columns(file, kind, stored_form(file, kind, linear_size(file, kind)))
    with refusals():
        for low in lowbit.read_block(folder, BASE, BLOCK).values():
            _compute(low)


def mutate(data: bytes, random: Random) -> bytes:
    """Metadata, whose words say forms and shapes; sums dropped so that content is looked at; any change."""
    parts = split(data)
    if parts is None or random.random() < 0.5:
        return mutate_safetensors(data, random)
    header, content = parts
    about = header.get("__metadata__")
    if not isinstance(about, dict) or not about:
        return mutate_safetensors(data, random)
    if random.random() < 0.5:
        header["__metadata__"] = {k: v for k, v in about.items() if not k.startswith("crc32.")}
        return mutate_safetensors(as_file(header, content), random)
    key = random.choice(list(about))
    about[key] = _other_text(str(about[key]), random)
    return as_file(header, content)


def _other_text(text: str, random: Random) -> str:
    words = text.split()
    if random.random() < 0.3:
        return random.choice(FORMS)
    if random.random() < 0.3 or not words:
        return mutate_bytes(text.encode(), random).decode(errors="replace")
    at = random.randrange(len(words))
    words[at] = str(odd_number(int(words[at]), random)) if words[at].isdigit() else words[at] + "x"
    return " ".join(words)


def _compute(low: LowBitWeights) -> None:
    n_in, n_out = low.correction.codes.shape
    stack = CorrectionStack(1, n_in, n_out)
    layer = Compensated(usable_layer(BASE, low), stack.add(0, low.correction, low.profile))
    stack.set_k_chunk(1024)
    assert layer.decode(torch.ones(1, n_in)).shape == (1, n_out)
    assert layer.prefill(torch.ones(3, n_in)).shape == (3, n_out)


def _block(folder: Path, form: str) -> bytes:
    generator = torch.Generator().manual_seed(3)
    linears = {}
    for kind, shape in SHAPES.items():
        weight = torch.randn(shape, generator=generator)
        profile = torch.linspace(2, 1, shape[1])
        columns = torch.linspace(0.5, 2, shape[1]) if form == "groups 4 128" else None
        linears[kind] = with_residual(weight, _base(weight, form), columns, profile)
    return write_block(folder, BASE, BLOCK, linears).read_bytes()


def _base(weight: torch.Tensor, form: str) -> BaseWeights:
    if form == "planes":
        scales = absmax_scales(weight, "row")
        return Quantised(quantise(weight, scales), scales)
    kind, bits, *group = form.split()
    if kind == "groups":
        return quantise_rtn(weight, int(bits), int(group[0]))
    table = torch.linspace(-2, 2, 2 ** int(bits)).bfloat16().float().expand(weight.shape[0], -1).contiguous()
    codes = (weight[:, :, None] - table[0]).abs().argmin(2).to(torch.uint8)
    return TableCodes(int(bits), codes, table)


def _without_sums(file: bytes) -> bytes:
    header, content = split(file)
    about = {key: value for key, value in header["__metadata__"].items() if not key.startswith("crc32.")}
    return as_file({**header, "__metadata__": about}, content)
