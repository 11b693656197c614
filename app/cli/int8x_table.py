"""The table `int8x inspect` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.cli import work

Row = dict[str, Any]
SHOWN_CODECS = 2


def show(result: Row, all_tensors: bool) -> None:
    """One line per tensor kind, or per tensor, then decoder linears and everything."""
    made_for = f", quality: {result['quality']}" if result["quality"] else ""
    print(f"{result['model']}: INT8-X version {result['format_version']}{made_for}")
    rows = result["tensors"] if all_tensors else result["kinds"]
    totals = [result["decoder_linears"], result["total"]]
    work.print_table([_line(row, all_tensors) for row in [*rows, *totals]])


def _line(row: Row, all_tensors: bool) -> Row:
    first = {"tensor": row.get("name", row["kind"])} if all_tensors else {"kind": row["kind"]}
    return {
        **first,
        "weights": f"{row['weights']:,}".replace(",", " "),
        "codec": ", ".join(_codecs(row)),
        "share of weights": _share(row["share"]),
        "mean widths": _widths(row["mean_widths"]),
        "bit/w": f"{row['bits_per_weight']:.3f}",
        "Huffman": f"{row['huffman_bits_per_weight']:.3f}",
        "entropy": f"{row['entropy_bits_per_weight']:.3f}",
    }


def _codecs(row: Row) -> Iterator[str]:
    if "codecs" in row:
        often = sorted(row["codecs"].items(), key=lambda item: -item[1])
        yield from (f"{name} × {count}" for name, count in often[:SHOWN_CODECS])
        if len(often) > SHOWN_CODECS:
            yield f"{len(often) - SHOWN_CODECS} more"
    else:
        levels = f" ({','.join(map(str, row['levels']))})" if row["levels"] else ""
        yield f"{row['codec']}{levels} per {row['granularity']}"


def _share(share: dict[str, float]) -> str:
    """Streams of adaptive planes by name, levels of bitmaps by their bits."""
    names = (f"{name} bit" if name.isdigit() else name for name in share)
    parts = zip(names, share.values(), strict=True)
    return " / ".join(f"{name} {100 * part:.1f}" for name, part in parts) + " %"


def _widths(widths: dict[str, float]) -> str:
    return " / ".join(f"{bits:.2f}" for bits in widths.values()) or "-"
