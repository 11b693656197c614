"""Residuals in page-locked memory: whole, or as many blocks as there is memory for."""

import torch

from kernels.dec import pack_nibbles, quantise_residual
from kernels.gpu.host_memory import PinError, allocate
from runtime.layers.pinned import pin_residuals

SHAPES = {"qkv": (40, 24), "o": (24, 24), "gate_up": (56, 24), "down": (24, 28)}


def model(blocks):
    generator = torch.Generator().manual_seed(0)
    return [
        {
            kind: pack_nibbles(quantise_residual(torch.randn(shape, generator=generator)).codes)
            for kind, shape in SHAPES.items()
        }
        for _ in range(blocks)
    ]


def test_every_row_comes_back():
    residuals = model(3)
    pinned = pin_residuals(residuals, 3)
    assert (len(pinned.rows), list(pinned.left_out), pinned.note) == (3, [], "")
    for rows, block in zip(pinned.rows, residuals, strict=True):
        for kind, words in block.items():
            assert torch.equal(rows[kind], words)


def test_blocks_beyond_the_memory_are_named_and_not_read():
    read, left = [], [2]

    def residuals():
        for index, block in enumerate(model(5)):
            read.append(index)
            yield block

    def take(nbytes):
        if not left[0]:
            raise PinError("0.01 GiB of host memory cannot be page-locked: out of memory")
        left[0] -= 1
        return allocate(nbytes)

    pinned = pin_residuals(residuals(), 5, take)
    assert list(pinned.left_out) == [2, 3, 4]
    assert read == [0, 1, 2]
    assert pinned.note.startswith("Blocks 2 to 4 stay uncorrected")
    assert "out of memory" in pinned.note
    kept = pinned.rows[0]["o"]
    pinned.close()
    assert kept.shape == (24, 3)


def test_memory_is_what_the_rows_take_and_no_more():
    pinned = pin_residuals(model(1), 1)
    words = sum(n_in * -(-n_out // 8) for n_out, n_in in SHAPES.values())
    assert [memory.nbytes for memory in pinned.memory] == [4 * words]
