"""Rows of the embedding, by the CPU's layer and by the kernel, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernels.gpu.embedding import HostTable, embed_token
from kernels.gpu.host_memory import allocate
from kernels.gpu.sampling.state import new_sampler_state
from kernels.gpu.step_state import new_step_state
from runtime.generation.settings import GREEDY
from runtime.layers.int8 import Int8

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VOCAB = 50


def layer(hidden, columns):
    generator = torch.Generator().manual_seed(hidden)
    codes = torch.randint(-128, 128, (VOCAB, hidden), generator=generator, dtype=torch.int8)
    scale = torch.rand(VOCAB, generator=generator) + 0.1
    return Int8(codes, scale, torch.rand(hidden, generator=generator) + 0.5 if columns else None)


def table_of(layer):
    memory = allocate(layer.q.numel())
    codes = memory.tensor(layer.q.shape, torch.int8)
    codes.copy_(layer.q)
    factors = layer.inverse_columns
    table = HostTable(codes, layer.scale.to(DEVICE), None if factors is None else factors.to(DEVICE))
    return memory, table


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("hidden", [64, 576, 2500])
def test_rows_are_those_of_the_layer(hidden, columns):
    expected = layer(hidden, columns)
    memory, table = table_of(expected)
    with memory:
        assert (table.vocab, table.hidden, table.device.type) == (VOCAB, hidden, DEVICE.type)
        index = torch.tensor([3, 49, 0, 3])
        for where in ("cpu", DEVICE):
            assert torch.equal(table.rows(index.to(where)).cpu(), expected.rows(index))
        state, stream = new_step_state(9, DEVICE), torch.zeros(1, hidden, device=DEVICE)
        for token, factor in ((49, 1.0), (7, 24.0)):
            state.place(2, token)
            embed_token(table, state, stream, scale=factor)
            assert torch.equal(stream.cpu(), expected.rows(torch.tensor([token])) * factor)
        # Ids that no table has: the nearest row, and nothing beyond the table is read.
        for token, row in ((-5, 0), (2_000_000_000, 49)):
            state.place(0, token)
            embed_token(table, state, stream)
            assert torch.equal(stream.cpu(), expected.rows(torch.tensor([row])))


def test_tokens_of_the_answer_are_marked_as_seen():
    memory, table = table_of(layer(64, False))
    with memory:
        sampler, state = new_sampler_state(VOCAB, DEVICE), new_step_state(9, DEVICE)
        sampler.set(GREEDY, first=4, seen=[1])
        stream = torch.zeros(1, 64, device=DEVICE)
        for position, token in ((3, 30), (4, 40), (4, 40), (8, 48)):
            state.place(position, token)
            embed_token(table, state, stream, sampler=sampler)
        assert sampler.seen.nonzero().flatten().tolist() == [1, 40, 48]


def test_tables_and_streams_that_do_not_fit_are_refused():
    memory, table = table_of(layer(64, True))
    with memory:
        state, stream = new_step_state(9, DEVICE), torch.zeros(1, 64, device=DEVICE)
        for change, why in (
            ({"codes": table.codes.short()}, "int16"),
            ({"codes": table.codes[:, ::2]}, "32"),
            ({"scale": table.scale[1:]}, "49"),
            ({"inverse_columns": table.inverse_columns.double()}, "float64"),
        ):
            with pytest.raises(ValueError, match=why):
                replace(table, **change)
        with pytest.raises(ValueError, match="65"):
            embed_token(table, state, torch.zeros(1, 65, device=DEVICE))
        with pytest.raises(ValueError, match="51"):
            embed_token(table, state, stream, sampler=new_sampler_state(51, DEVICE))
