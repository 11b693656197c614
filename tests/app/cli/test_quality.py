"""Options that say how good or how small a model is to be."""

import click
import pytest

from app.cli.quality import Size, quality_of
from runtime.errors import DecdecError
from runtime.protocol.quality import Quality


@pytest.mark.parametrize(
    ("text", "size"),
    [("1.2GB", 1_200_000_000), ("800 mb", 800_000_000), ("5TB", 5 * 10**12), ("123", 123), ("2kB", 2000)],
)
def test_sizes(text, size):
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "GB", "1.2XB", "1e999GB", "one"])
def test_no_sizes(text):
    with pytest.raises(click.BadParameter, match=r"1\.2GB"):
        Size().convert(text, None, None)


@pytest.mark.parametrize(
    ("options", "quality"),
    [
        ({}, None),
        ({"bits": 3.4}, Quality(bits=3.4)),
        ({"kl": 0.02}, Quality(kl=0.02)),
        ({"size": 10**9}, Quality(bytes=10**9)),
        ({"scale": "row"}, Quality(preset="fine")),
        ({"scale": "tensor"}, Quality(preset="paper")),
        ({"preset": "small"}, Quality(preset="small")),
    ],
)
def test_one_wish(options, quality):
    assert quality_of(**options) == quality


def test_two_wishes_contradict_each_other():
    with pytest.raises(DecdecError, match="one of"):
        quality_of(bits=3.4, size=10**9)
