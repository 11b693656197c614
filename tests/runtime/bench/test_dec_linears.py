"""Linears that stand for other devices: more base rows than outputs, corrected as a step corrects them."""

import torch

from kernels.gpu.dec.fetch import FetchConfig
from runtime.bench.dec_linears import LinearBlock, linear_tasks
from runtime.layers.base import LINEAR_KINDS
from runtime.tuner.random_weights import makers

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TINY = {"qkv": (48, 128), "o": (32, 128), "gate_up": (64, 128), "down": (32, 192)}
WAY = FetchConfig(4, 1)


def block(shapes=TINY, **options):
    return LinearBlock(shapes, makers("awq4", DEVICE), DEVICE, **options)


def results(block, fetching, table):
    block.start(table)
    for call in block.calls(fetching):
        call()
    return [result.clone() for result in block.results]


def test_a_block_has_more_base_rows_than_outputs():
    mine = LinearBlock(TINY, makers("awq3.5", DEVICE), DEVICE, ratio=2.0, copies=6)
    linears = mine.linears({"qkv": WAY, "down": WAY})
    assert [block["o"].weights.bits for block in linears] == [3, 3, 4, 4, 3, 3]
    assert linears[0]["down"].weights.rows == 64
    assert linears[0]["down"].fetch.residual.rows == mine.shapes["down"].n_out == 32
    assert [kind for kind, linear in linears[0].items() if linear.fetch] == ["qkv", "down"]
    assert len(mine.calls({})) == 6 * len(LINEAR_KINDS)
    assert len(mine.calls({}, again="o")) == 6 * (len(LINEAR_KINDS) + 1)


def test_a_table_corrects_the_kinds_it_names():
    shapes = {"qkv": (16, 128), "o": (16, 128), "gate_up": (256, 128), "down": (16, 128)}
    mine = block(shapes, ratio=2.0, copies=1)
    sums = {kind: len(shapes) + LINEAR_KINDS.index(kind) for kind in ("o", "down")}
    plain = results(mine, {}, {})
    found = results(mine, {"o": WAY, "down": WAY}, {"down": 64})
    assert torch.equal(found[sums["o"]], plain[sums["o"]])
    assert not torch.equal(found[sums["down"]], plain[sums["down"]])


def test_tasks_compile_every_linear_of_every_ratio():
    tasks = list(linear_tasks("awq4", {"o": (16, 128), "down": (16, 128)}, (1.0, 2.0), DEVICE, 50.0))
    assert len(tasks) == 4
    tasks[0]()
