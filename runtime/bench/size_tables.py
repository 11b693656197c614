"""Effective bits and lossless checks: tables 2.3 and 3.3 of the INT8-X paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernels.int8x import entropy_bits, histogram, huffman_bits
from runtime.bench.coding import HUFFMAN, PAPER, Outcome
from runtime.bench.samples import Sample
from runtime.bench.table import Row, Table, beside_paper

Outcomes = Mapping[str, Outcome]

# Bits per weight: flags, data, and everything with block tables and scales.
PAPER_BITS = {PAPER.name: (1.445, 4.013, 5.50)}
TOGETHER = "entropy, all together"
PAPER_TOTALS = {TOGETHER: 4.66, HUFFMAN.name: 4.66, "plain INT8": 8.0}


def size_table(coded: Sequence[tuple[Sample, Outcomes]]) -> Table:
    """Table 2.3: where the bits of every codec go."""
    rows = [row for sample, outcomes in coded for row in _size_rows(sample, outcomes)]
    notes = [f"{sample.name}: {sample.note}." for sample, _ in coded]
    notes.append(
        "Entropy and Huffman code are means over matrices, each with a histogram of its own; all together is"
        " one histogram for the model, as the paper's. Adaptive planes see rows, so they may lie below."
    )
    notes.append(
        "All in bits per weight. Flags: the nested bitmaps. Tables: running counts of each block of 1024, or"
        " widths, counts and row order of adaptive planes, or block starts and code lengths of Huffman. The"
        " paper's 5.46 leaves tables and scales out."
    )
    return Table("2.3", "Effective bits (paper: 2.3)", beside_paper(rows), notes)


def lossless_table(coded: Sequence[tuple[Sample, Outcomes]]) -> Table:
    """Table 3.3: every weight decoded and compared."""
    rows: list[Row] = [
        {
            "weights": sample.name,
            "codec": name,
            "compared": outcome.compared,
            "mismatches": outcome.mismatches,
            "match": f"{1 - outcome.mismatches / outcome.compared:.1%}",
            "paper": "100.0%" if name == PAPER.name else None,
        }
        for sample, outcomes in coded
        for name, outcome in outcomes.items()
    ]
    return Table("3.3", "Lossless, weight by weight (paper: 3.3)", beside_paper(rows), [])


def _size_rows(sample: Sample, outcomes: Outcomes) -> list[Row]:
    rows = [
        _whole(sample, TOGETHER, entropy_bits(sample.histogram)),
        _whole(sample, "entropy", sample.mean(lambda q: entropy_bits(histogram(q)))),
        _whole(sample, "Huffman code", sample.mean(lambda q: huffman_bits(histogram(q)))),
    ]
    for name, outcome in outcomes.items():
        bits, paper = outcome.bits, PAPER_BITS.get(name, (None, None, PAPER_TOTALS.get(name)))
        rows.append(
            {
                "weights": sample.name,
                "codec": name,
                "flags": bits.flags,
                "data": bits.data,
                "tables": bits.tables,
                "scales": bits.scales,
                "total": bits.total,
                "paper flags": paper[0],
                "paper data": paper[1],
                "paper total": paper[2],
            }
        )
    return rows


def _whole(sample: Sample, name: str, bits: float) -> Row:
    nothing = dict.fromkeys(("flags", "data", "tables", "scales"))
    total = {"total": bits, "paper flags": None, "paper data": None, "paper total": PAPER_TOTALS.get(name)}
    return {"weights": sample.name, "codec": name, **nothing, **total}
