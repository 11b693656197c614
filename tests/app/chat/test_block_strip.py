"""A strip fills block by block; steps that go there and back fill it twice."""

import pytest

from app.chat.widgets.block_strip import strip
from runtime.protocol.events import Progress


def at(step, done, total, cells=40):
    found = strip(Progress("prepare", step, done, total, "blocks"), cells)
    return "".join(chars for chars, _ in found.runs), found.words


@pytest.mark.parametrize(
    ("done", "drawn"), [(0, "▫▫▫▫▫"), (1, "▮▫▫▫▫"), (4, "▮▮▮▮▫"), (5, "▮▮▮▮▮"), (9, "▮▮▮▮▮")]
)
def test_one_cell_a_block(done, drawn):
    assert at("quantise", done, 5)[0] == drawn


@pytest.mark.parametrize(
    ("done", "drawn", "words"),
    [
        (0, "▫▫▫▫▫", "0 of 5 blocks, on the way there"),
        (3, "▪▪▪▫▫", "3 of 5 blocks, on the way there"),
        (5, "▪▪▪▪▪", "5 of 5 blocks, on the way there"),
        (6, "▪▪▪▪▮", "1 of 5 blocks, on the way back"),
        (10, "▮▮▮▮▮", "5 of 5 blocks, on the way back"),
    ],
)
def test_there_by_half_and_back_from_the_end(done, drawn, words):
    assert at("sensitivity", done, 10) == (drawn, words)


def test_more_blocks_than_cells_share_them():
    assert at("quantise", 40, 80, cells=20)[0] == "▮" * 10 + "▫" * 10
    assert at("quantise", 79, 80, cells=20)[0] == "▮" * 19 + "▫"
    assert at("quantise", 79, 80, cells=20)[1] == "79 of 80 blocks"
