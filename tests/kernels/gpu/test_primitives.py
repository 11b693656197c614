"""Primitives against numpy: the plain twins in the interpreter, the PTX forms on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from kernels.gpu import primitives, tensor_cores

LANES = 64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def _mma(a, b, out, SIGNED: tl.constexpr, ASM: tl.constexpr):
    i = tl.arange(0, 64)
    c0, c1, c2, c3 = tensor_cores.mma(
        tl.load(a + i).to(tl.uint32, bitcast=True),
        tl.load(a + 64 + i).to(tl.uint32, bitcast=True),
        tl.load(a + 128 + i).to(tl.uint32, bitcast=True),
        tl.load(a + 192 + i).to(tl.uint32, bitcast=True),
        tl.load(b + i).to(tl.uint32, bitcast=True),
        tl.load(b + 64 + i).to(tl.uint32, bitcast=True),
        i,
        i + 1,
        i + 2,
        i + 3,
        SIGNED,
        ASM,
    )
    tl.store(out + i, c0)
    tl.store(out + 64 + i, c1)
    tl.store(out + 128 + i, c2)
    tl.store(out + 192 + i, c3)


@triton.jit
def _warp(words, lanes, counted, summed, taken, shifted, ASM: tl.constexpr):
    i = tl.arange(0, 64)
    w = tl.load(words + i).to(tl.uint32, bitcast=True)
    lane = tl.load(lanes + i)
    n = primitives.popc(w, ASM)
    other = primitives.warp_take(w, lane, ASM)
    tl.store(counted + i, n)
    tl.store(summed + i, primitives.warp_scan(n, ASM))
    tl.store(taken + i, other.to(tl.int32, bitcast=True))
    tl.store(shifted + i, primitives.funnel_left(w, other, lane, ASM).to(tl.int32, bitcast=True))


@triton.jit
def _copy(source, out, ASM: tl.constexpr):
    i = tl.arange(0, 64)
    w0, w1, _, _ = primitives.stream_words4(source + 4 * i, ASM)
    x0, x1, x2, x3 = primitives.load_shared_input4(source + 4 * i, ASM)
    y0, y1 = primitives.stream_words2(source + 4 * i + 2, ASM)
    primitives.store_words4(out + 4 * i, w0 ^ x3, w1 ^ x2, y0 ^ x1, y1 ^ x0, (i % 3 != 0).to(tl.int32), ASM)


def _words(*shape, seed=0):
    return np.random.default_rng(seed).integers(-(2**31), 2**31, shape, dtype=np.int32)


def _run(kernel, inputs, outputs, **options):
    arguments = [torch.from_numpy(a.copy()).to(DEVICE) for a in (*inputs, *outputs)]
    primitives.launch(kernel, (1,), *arguments, num_warps=2, **options)
    return [a.cpu().numpy() for a in arguments[len(inputs) :]]


@pytest.mark.parametrize("signed", [False, True])
def test_mma_is_the_matrix_product_of_its_fragments(signed):
    a, b = _words(4, LANES), _words(2, LANES, seed=1)
    (out,) = _run(_mma, (a, b), (np.zeros((4, LANES), np.int32),), SIGNED=signed)
    bytes_a = a.view(np.int8 if signed else np.uint8).reshape(4, 2, 8, 4, 4).astype(np.int64)
    bytes_b = b.view(np.int8).reshape(2, 2, 8, 4, 4).astype(np.int64)
    for warp in range(2):
        matrix_a = np.zeros((16, 32), np.int64)
        for register in range(4):
            row, column = 8 * (register % 2), 16 * (register // 2)
            matrix_a[row : row + 8, column : column + 16] = bytes_a[register, warp].reshape(8, 16)
        matrix_b = np.concatenate([bytes_b[half, warp].reshape(8, 16) for half in range(2)], 1)
        product = matrix_a @ matrix_b.T
        for register in range(4):
            start = np.arange(32 * warp, 32 * warp + 32) + register
            row, column = 8 * (register // 2), register % 2
            expected = product[row : row + 8, column::2].reshape(-1) + start
            np.testing.assert_array_equal(out[register, 32 * warp : 32 * warp + 32], expected)


def test_warp_operations_stay_inside_a_warp():
    words, lanes = _words(LANES), np.random.default_rng(2).integers(0, 32, LANES, dtype=np.int32)
    words[:3] = (0, -1, 1 << 30)
    lanes[:2] = (0, 31)
    counted, summed, taken, shifted = _run(_warp, (words, lanes), [np.zeros(LANES, np.int32)] * 4)
    ones = np.array([int(w).bit_count() for w in words.view(np.uint32)])
    np.testing.assert_array_equal(counted, ones)
    np.testing.assert_array_equal(summed, ones.reshape(2, 32).cumsum(1).reshape(-1))
    others = words.reshape(2, 32)[np.arange(LANES) // 32, lanes]
    np.testing.assert_array_equal(taken, others)
    pairs = (words.view(np.uint32).astype(np.uint64) << np.uint64(32)) | others.view(np.uint32)
    upper = (pairs << lanes.astype(np.uint64)) >> np.uint64(32)
    np.testing.assert_array_equal(shifted.view(np.uint32), upper.astype(np.uint32))


def test_loads_take_every_word_and_stores_obey_their_mask():
    source = _words(LANES, 4)
    (out,) = _run(_copy, (source,), (np.full((LANES, 4), 7, np.int32),))
    expected = source ^ source[:, ::-1]
    expected[np.arange(LANES) % 3 == 0] = 7
    np.testing.assert_array_equal(out, expected)
