"""What a measured product would take on other cards: the larger of memory time and arithmetic time.

Arithmetic is scaled by sub-cores times clock from the cycles a weight took where it was measured, stalls
included, which is an upper bound for kernels that waited for memory there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SUBCORES_AN_SM = 4
# The share of its peak bandwidth that a large copy reaches on these cards.
BANDWIDTH_SHARE = 0.9
BF16_BITS = 16


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU: multiprocessors, boost clock in GHz, memory bandwidth in GB/s, and where that is written."""

    name: str
    sms: int
    ghz: float
    gb_s: float
    source: str


H200 = Card("H200", 132, 1.98, 4800, "NVIDIA H200 datasheet; clock as nvidia-smi reads it under load")
CARDS = (
    Card("RTX 4050 Laptop", 20, 2.37, 192, "NVIDIA product specification: 2560 cores, 96 bits at 16 Gbit/s"),
    Card("RTX 4070", 46, 2.475, 504, "NVIDIA product specification: 5888 cores, 192 bits at 21 Gbit/s"),
    Card("RTX 4090", 128, 2.52, 1008, "NVIDIA product specification: 16384 cores, 384 bits at 21 Gbit/s"),
)


def memory_us(weights: int, bits: float, card: Card) -> float:
    """Microseconds to read the weights."""
    return weights * bits / 8 / (card.gb_s * 1e3 * BANDWIDTH_SHARE)


def arithmetic_us(measured_us: float, measured_on: Card, card: Card) -> float:
    """Microseconds of as many sub-core cycles as were spent where it was measured."""
    return measured_us * (measured_on.sms * measured_on.ghz) / (card.sms * card.ghz)


def cycles_per_32_weights(measured_us: float, weights: int, card: Card) -> float:
    """Cycles of one sub-core for the 32 weights a warp instruction covers, one a lane."""
    return measured_us * 1e3 * card.ghz * card.sms * SUBCORES_AN_SM / (weights / 32)


def forecast_rows(products: Sequence[dict[str, Any]], measured_on: Card = H200) -> Iterator[dict[str, Any]]:
    """Rows for products with `format`, `weights`, `bits` and `us`, on each card."""
    for row in products:
        weights, bits, us = int(row["weights"]), float(row["bits"]), float(row["us"])
        for card in CARDS:
            memory, arithmetic = memory_us(weights, bits, card), arithmetic_us(us, measured_on, card)
            dense = memory_us(weights, BF16_BITS, card)
            yield {
                "format": row["format"],
                "card": card.name,
                "bits": bits,
                "cycles a 32 weights": cycles_per_32_weights(us, weights, measured_on),
                "memory us": memory,
                "arithmetic us": arithmetic,
                "x bf16": dense / max(memory, arithmetic),
                "source": card.source,
            }
