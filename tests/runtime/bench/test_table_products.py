"""The rows of the benchmark from made-up times; the products in them are real."""

import pytest
import torch

from runtime.bench import fetch_rows, table_products

SHAPE = (16, 140)


class FakeReplay:
    """10 us for every call, and 0.5 us more where something is fetched."""

    def __init__(self, calls):
        self.calls = calls
        for call in calls:
            call()

    def microseconds(self, replays=15):
        return 10.0 * len(self.calls)

    def added_to(self, reference, replays=11):
        return 0.5 * len(self.calls), 10.0 * len(reference.calls)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for module in (table_products, fetch_rows):
        monkeypatch.setattr(module, "DEVICE", "cuda" if torch.cuda.is_available() else "cpu")
        monkeypatch.setattr(module, "Replay", FakeReplay)
        monkeypatch.setattr(module, "copies_needed", lambda nbytes: 2)


def test_launches_are_compared_with_bf16_by_bytes_and_time(monkeypatch):
    monkeypatch.setattr(table_products, "SMALL_LAUNCHES", table_products.SMALL_LAUNCHES[:1])
    monkeypatch.setattr(table_products, "SMALL_PLANE_LAUNCHES", ())
    bf16, four, three = table_products.launch_rows(SHAPE)
    assert bf16["TB/s"] == pytest.approx(2 * 16 * 140 / 10.0 / 1e6)
    # Two steps of 128 columns, 32 bytes of entries and 8 of zero and step a row.
    assert four["bits"] == pytest.approx(8 * (256 * 4 / 8 + 32 + 8) / 140)
    assert four["share"] == pytest.approx(four["bits"] / 16)
    assert three["x bf16"] == pytest.approx(1.0)
    assert max(four["error"], three["error"]) < 1e-6


def test_fetches_are_checked_and_set_against_the_product_without(monkeypatch):
    monkeypatch.setattr(fetch_rows, "K_CHUNKS", (0, 24))
    monkeypatch.setattr(fetch_rows, "_SMALL", ((4, 2),))
    (row,) = fetch_rows.fetch_rows("tables", table_products.FORMS["tables, 3 bit"], [SHAPE])
    assert row["fetch"] == "4 rows, 2 splits, 4 warps"
    assert row["base us"] == 10.0
    assert row["k 24"] == pytest.approx(1.05)
    assert row["GB/s at the last"] == pytest.approx(24 * 140 / 1024 * 8 / 10.5 / 1e3)
    assert row["error"] < 1e-6


def test_every_section_that_is_wanted_is_compiled():
    assert table_products._wanted("launches", ())
    assert table_products._wanted("fetch tables, 4 bit", ("fetch tables", "memory"))
    assert not table_products._wanted("batches", ("fetch",))
    pairs = [(name, shape) for name in table_products.FORMS for shape in table_products.SHAPES]
    launches = sum(len(table_products.launches_of(*pair)) for pair in pairs)
    assert len(list(table_products._tasks(("launches",)))) == launches
