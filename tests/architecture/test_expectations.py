"""What docs/expectations.md promises is held by tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)


def test_every_test_that_is_named_is_there():
    text = (ROOT / "docs" / "expectations.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z0-9_/]+\.py)::(test_\w+)`", text)
    assert len(named) > 100
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"def {name}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_every_promise_is_held_or_said_not_to_be():
    text = (ROOT / "docs" / "expectations.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", row) for row in ROW.findall(text)]
    promises = [
        [cell.strip() for cell in row]
        for row in rows
        if not set(row[0]) <= set("-") and "punished" not in row[0]
    ]
    assert all(len(row) == 3 for row in promises), [row for row in promises if len(row) != 3]
    assert all(row[2] or "not held" in row[1] for row in promises)
