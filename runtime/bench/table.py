"""Tables of results: rows of plain values, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Row = dict[str, Any]

# The one model that the INT8-X paper measured.
PAPER_MODEL = "MiniCPM5-1B"


@dataclass(frozen=True, slots=True)
class Table:
    """`key` is short and stable, `notes` are sentences below the table; all rows have the same columns.

    None in a cell: not measured here, or the paper has no such figure.
    """

    key: str
    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for row in self.rows:
            if list(row) != list(self.rows[0]):
                raise ValueError(
                    f"a row of table {self.key} has columns {list(row)}, not {list(self.rows[0])}"
                )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def same_columns(rows: Sequence[Row]) -> list[Row]:
    """The rows with every column that any of them has, None where it was missing."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return [{key: row.get(key) for key in columns} for row in rows]


def beside_paper(rows: Sequence[Row], model: str = PAPER_MODEL) -> list[Row]:
    """The rows with the paper's figures only where the weights are those of the model it measured."""
    ours = [str(row["weights"]).startswith(model) for row in rows]
    return [
        {key: value if mine or not key.startswith("paper") else None for key, value in row.items()}
        for row, mine in zip(rows, ours, strict=True)
    ]


def markdown(table: Table) -> str:
    """A heading, the table, and its notes."""
    lines = [f"## {table.title}", ""]
    if table.rows:
        columns = list(table.rows[0])
        lines += [_line(columns), _line(["---"] * len(columns))]
        lines += [_line([cell(value) for value in row.values()]) for row in table.rows]
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def cell(value: Any) -> str:
    """A value as people read it: three decimals, or four digits of large numbers."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if isinstance(value, float):
        return f"{value:.3f}" if 0.1 <= abs(value) < 100 or value == 0 else f"{value:.4g}"
    return str(value).replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
