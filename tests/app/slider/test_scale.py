"""Positions on a track of cells."""

import pytest

from app.slider import DETENTS, Position, Scale
from app.slider.position import LOSSLESS


@pytest.mark.parametrize("cells", [12, 30, 78, 200])
@pytest.mark.parametrize("lossless", [False, True])
def test_every_detent_can_be_clicked(cells, lossless):
    scale = Scale(cells, lossless)
    positions = [Position(d) for d in DETENTS] + ([LOSSLESS] if lossless else [])
    for position in positions:
        assert 0 <= scale.cell(position) < cells
        assert scale.at(scale.cell(position)) == position


@pytest.mark.parametrize("lossless", [False, True])
def test_clicks_are_monotonic_and_cover_the_range(lossless):
    scale = Scale(90, lossless)
    found = [scale.at(cell) for cell in range(-5, 100)]
    values = [position.pct + position.lossless for position in found]
    assert values == sorted(values)
    assert (found[0], found[-1]) == (Position(0.0), LOSSLESS if lossless else Position(20.0))
    assert len(set(values)) > 50


def test_labels_stand_below_their_detents():
    scale = Scale(80)
    line = scale.labels(("0", "2.5", "5", "10", "20 %"))
    assert len(line) == 80
    assert line[scale.cell(Position(5.0))] == "5"
    assert line.split() == ["0", "2.5", "5", "10", "20", "%"]


def test_labels_that_collide_are_left_out():
    assert "2.5" not in Scale(8).labels(("0", "2.5", "5", "10", "20 %"))


@pytest.mark.parametrize("cells", [56, 80, 182])
def test_the_word_for_lossless_fits_beside_the_last_label(cells):
    scale = Scale(cells, lossless=True)
    line = scale.labels(("0", "2.5", "5", "10", "20 %"))
    assert line[-len("    lossless") :].isspace()
    assert "20 %" in line
