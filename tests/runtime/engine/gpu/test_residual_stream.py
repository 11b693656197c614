"""Residual slices arrive in order, each in time, and in two buffers alone."""

import pytest
import torch

from kernels.gpu.dec.fetch import ResidualRows
from runtime.engine.gpu.residual_stream import ResidualStream, channel_slices, largest_slice

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


def residual(n_in, n_out, seed=0):
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(-(2**31), 2**31, (n_in, -(-n_out // 8)), dtype=torch.int32, generator=generator)
    return ResidualRows(words.pin_memory() if CUDA else words, torch.ones(n_out, device=DEVICE))


def test_slices_are_even_and_of_whole_steps():
    slices = channel_slices(residual(4096, 28672 // 8), 2 << 20)
    assert [piece.channels for piece in slices] == [(0, 1024), (1024, 2048), (2048, 3072), (3072, 4096)]
    assert largest_slice(4096, 28672 // 2, 16 << 20) == 1024 * 28672 // 2
    assert largest_slice(600, 4000, 10) == 128 * 4000


def test_every_slice_arrives_in_order():
    pieces = [piece for i in range(3) for piece in channel_slices(residual(300 + 100 * i, 96, i), 8192)]
    assert len(pieces) > 6
    stream = ResidualStream(DEVICE, 8192)
    arrived = [words.clone() for words in stream.through(pieces)]
    assert len(arrived) == len(pieces)
    for found, piece in zip(arrived, pieces, strict=True):
        assert torch.equal(found.cpu(), piece.words)


def test_two_buffers_take_turns_and_one_is_filled_ahead():
    pieces = channel_slices(residual(640, 64), 4096)
    assert len(pieces) == 5
    taken = []

    def asked():
        for piece in pieces:
            taken.append(piece.first)
            yield piece

    stream = ResidualStream(DEVICE, 4096)
    assert stream.nbytes == 8192
    places = []
    for number, words in enumerate(stream.through(asked())):
        places.append(words.data_ptr())
        assert len(taken) == min(number + 2, 5)
        assert torch.equal(words.cpu(), pieces[number].words)
    assert places[0] == places[2] == places[4] != places[1] == places[3]


def test_a_walk_that_was_left_does_not_disturb_the_next():
    stream = ResidualStream(DEVICE, 4096)
    first, second = (channel_slices(residual(512, 64, seed), 4096) for seed in (1, 2))
    walk = stream.through(first)
    next(walk)
    walk.close()
    for words, piece in zip(stream.through(second), second, strict=True):
        assert torch.equal(words.cpu(), piece.words)


def test_nothing_to_bring_is_no_error_and_too_much_is():
    stream = ResidualStream(DEVICE, 4096)
    assert list(stream.through([])) == []
    with pytest.raises(ValueError, match="does not fit 4096"):
        next(stream.through(channel_slices(residual(256, 128), 8192)))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_a_buffer_is_not_filled_again_before_it_was_read():
    pieces = channel_slices(residual(1 << 16, 1024), 4 << 20)
    stream, found = ResidualStream(DEVICE, 4 << 20), []
    for words in stream.through(pieces):
        torch.cuda._sleep(20_000_000)
        found.append(words.clone())
    for words, piece in zip(found, pieces, strict=True):
        assert torch.equal(words.cpu(), piece.words)
