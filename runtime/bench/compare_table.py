"""INT8-X beside its rivals: tables 3.2, 3.4 and 3.5 of the INT8-X paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.bench import dfloat
from runtime.bench.bitmap_products import decoder_ladder
from runtime.bench.coding import ADAPTIVE, HUFFMAN, PAPER, PLAIN
from runtime.bench.samples import Sample
from runtime.bench.size_tables import Outcomes
from runtime.bench.table import Row, Table, beside_paper

BF16, DFLOAT = "bf16", "DFloat11 (bf16)"
BF16_BITS = 16
# bit/w, ms of a forward pass, GB on the device, MB stored: an RTX 4090 and MiniCPM5-1B.
PAPER_FIGURES: dict[str, tuple[float | None, ...]] = {
    BF16: (16.0, 35, 2.2, 2161),
    PLAIN.name: (8.0, None, None, 679),
    PAPER.name: (5.5, 44, 1.3, 463),
    HUFFMAN.name: (4.66, 442, 1.5, 389),
    DFLOAT: (12.4, 105, 2.0, None),
}
EXACT = {BF16: "itself", DFLOAT: "bf16"}
PAPER_LADDER = {
    "v7 Python bit loop": 676,
    "v8 vectorised torch": 446,
    "v9 Triton, sums by torch": 175,
    "v10 Triton, fused": 44,
}
DFLOAT_WEIGHTS = 3_000_000
LADDER_WEIGHTS = 4_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """Bits per weight, and seconds to decode the whole model on the CPU once."""

    bits: float
    decode_s: float | None


def compare_table(
    coded: Sequence[tuple[Sample, Outcomes]],
    tokens: Sequence[Mapping[str, Any]],
    failures: Sequence[str] = (),
) -> Table:
    """Tables 3.2 and 3.5. `tokens`: rows of `measure_formats`, none without a GPU; `failures`: notes."""
    times = {(token["model"], token["format"]): token for token in tokens}
    rows, notes = [], []
    for sample, outcomes in coded:
        sizes = _sizes(outcomes, sample)
        dfloat_size, why = dfloat_bits(sample)
        if dfloat_size is not None:
            sizes[DFLOAT] = Size(dfloat_size, None)
        notes.append(f"{sample.name}, {DFLOAT}: {why}.")
        rows += list(_rows(sample, sizes, times))
    notes += [
        *failures,
        "MB: all decoder linears. ms a token: all fused linears with norms and gates in one CUDA graph. The"
        " paper times a whole eager forward pass of MiniCPM5-1B on an RTX 4090, and counts the bf16 embedding"
        " tables into 2161 MB and the GB. CPU decode: all linears once, to int8. Lossless bf16 is DFloat11"
        " here and the authors' own BF16X in the paper.",
    ]
    return Table(
        "3.5",
        "Beside bf16, plain INT8, Huffman and lossless bf16 (paper: 3.2, 3.5)",
        beside_paper(rows),
        notes,
    )


def ladder_table(sample: Sample) -> Table:
    """Table 3.4: the decoders of (3,5,8) from a Python loop to the fused kernel."""
    q = max((matrix.q for matrix in sample.matrices), key=torch.Tensor.numel)
    q = q[: max(1, LADDER_WEIGHTS // q.shape[1])]
    figures = decoder_ladder(q)
    slowest = max(figures.values())
    rows: list[Row] = [
        {
            "decoder": name,
            "ms a million weights": 1e3 * seconds,
            "x v7": slowest / seconds,
            "paper, ms a forward pass": PAPER_LADDER.get(name),
        }
        for name, seconds in figures.items()
    ]
    where = "on the GPU" if torch.cuda.is_available() else "on the CPU; v9 and v10 need a GPU"
    return Table("3.4", "Decoders, version by version (paper: 3.4)", rows, [f"{sample.name}, {where}."])


def dfloat_bits(sample: Sample) -> tuple[float | None, str]:
    """Bits per weight by the package's own encoder on part of the weights, and what was coded or why not."""
    if why := dfloat.missing():
        return None, why
    q = torch.cat([matrix.q.reshape(-1)[:DFLOAT_WEIGHTS] for matrix in sample.matrices[:4]])[:DFLOAT_WEIGHTS]
    if sample.real:
        return None, "its weights were rounded to int8 here, whose bf16 would compress too well"
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(q.numel(), generator=generator) * q.float().std()
    packed = dfloat.compress(normal.to(torch.bfloat16)[None])
    return 8 * packed.nbytes / q.numel(), f"{q.numel() / 1e6:g} M normal weights, coded by the package"


def _sizes(outcomes: Outcomes, sample: Sample) -> dict[str, Size]:
    sizes = {BF16: Size(BF16_BITS, None)}
    for codec in (PLAIN, ADAPTIVE, PAPER, HUFFMAN):
        outcome = outcomes[codec.name]
        seconds = outcome.decode_s * sample.all_weights / outcome.compared
        sizes[codec.name] = Size(outcome.bits.total, None if codec is PLAIN else seconds)
    return sizes


def _rows(
    sample: Sample, sizes: Mapping[str, Size], times: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[Row]:
    for name, size in sizes.items():
        paper = PAPER_FIGURES.get(name, (None,) * 4)
        token = times.get((sample.name.removesuffix(" shapes"), name), {})
        yield {
            "weights": sample.name,
            "format": name,
            "bit/w": size.bits,
            "MB": size.bits * sample.all_weights / 8e6,
            "exact": EXACT.get(name, "INT8"),
            "ms a token": token.get("ms"),
            "x bf16": token.get("ratio"),
            "device MB": token["weight_bytes"] / 1e6 if token else None,
            "CPU decode, ms": None if size.decode_s is None else 1e3 * size.decode_s,
            "paper bit/w": paper[0],
            "paper ms": paper[1],
            "paper GB": paper[2],
            "paper MB": paper[3],
        }
