"""What docs/reliability.md claims is held by tests that are there, and no row leaves out what was lost."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 5


def text():
    return (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def rows():
    """Cells of every row of every table but heads and rules."""
    found = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in found if row[0].strip() != "fault"]


def test_every_row_has_fault_cause_count_loss_and_holder():
    assert len(rows()) > 50
    assert [row for row in rows() if len(row) != COLUMNS or not all(row)] == []


def test_every_row_names_a_test_or_says_that_it_was_done_by_hand():
    assert [row[0] for row in rows() if "::test_" not in row[4] and "by hand" not in row[4]] == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z0-9_/]+\.py::test_\w+)`", text()))))
def test_every_test_that_is_named_is_there(name):
    file, test = name.split("::")
    assert re.search(rf"def {test}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"))
