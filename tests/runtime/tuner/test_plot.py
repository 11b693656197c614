"""The picture of a tuned device."""

import pytest
from PIL import Image

from runtime.errors import DecdecError
from runtime.pictures import DOTS_PER_INCH, require_suffix
from runtime.tuner import plot, tuning
from runtime.tuner.costs import knee
from tests.runtime.tuner.simulated import SimulatedDevice


def test_curves_knees_and_path_are_drawn(tmp_path):
    tuned = tuning.run(SimulatedDevice(2.7))
    plot.draw(tmp_path / "knees.svg", "a title & more", tuned)
    text = (tmp_path / "knees.svg").read_text()
    assert text.startswith("<?xml")
    plot.draw(tmp_path / "knees.png", "title", tuned)
    with Image.open(tmp_path / "knees.png") as picture:
        assert picture.width == 13 * DOTS_PER_INCH


def test_the_marked_knees_are_those_of_the_curves(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn = []
    monkeypatch.setattr(Axes, "vlines", lambda self, x, low, high, **style: drawn.append((x, high)))
    tuned = tuning.run(SimulatedDevice(6.7))
    plot.draw(tmp_path / "knees.svg", "title", tuned)
    costs = tuned.costs
    base = costs.base.linears
    knees = {kind: knee(costs.added[kind], base[kind]) for kind in base}
    expected = [(k, base[kind] + costs.added[kind][k]) for kind, k in knees.items() if k]
    assert drawn == [pytest.approx(mark) for mark in expected]
    assert len(drawn) >= 2


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DecdecError, match=r"neither \.svg nor \.png"):
        require_suffix(tmp_path / "knees.pdf")
