"""The static KV cache: what is written is read again, in bf16 and int8, and bytes are what was said."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.attention.cache import (
    DeviceCache,
    LayerCache,
    cache_bytes_per_token,
    new_device_cache,
    quantise_rows,
)
from kernels.gpu.attention.scratch import AttentionScratch, new_attention_scratch


def _rows(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_bf16_rows_are_rounded_and_seen_without_a_copy():
    cache = new_device_cache(2, 3, 10, 6, "cpu")
    layer = cache.layer(1)
    keys, values = _rows(3, 4, 6), _rows(3, 4, 6, seed=1)
    layer.write(0, keys[:, :3], values[:, :3])
    layer.write(3, keys[:, 3:], values[:, 3:])
    seen = layer.visible(4)
    assert torch.equal(seen[0], keys.bfloat16())
    assert torch.equal(seen[1], values.bfloat16())
    assert seen[0].data_ptr() == cache.keys[1].data_ptr()


def test_int8_rows_are_within_half_a_step():
    layer = new_device_cache(2, 3, 10, 64, "cpu", bits=8).layer(0)
    keys, values = 5 * _rows(3, 4, 64), _rows(3, 4, 64, seed=1)
    values[1, 2] = 0
    layer.write(2, keys, values)
    for seen, rows in zip(layer.visible(6), (keys, values), strict=True):
        assert seen.dtype == torch.bfloat16
        bound = rows.abs().amax(-1, keepdim=True) / 254 + rows.abs() * 2**-8
        assert ((seen[:, 2:].float() - rows).abs() <= 1.001 * bound).all()


def test_codes_use_the_whole_range_and_break_ties_to_even():
    rows = torch.tensor([[254.0, 1.0, 3.0, -254.0], [0.0, 0.0, 0.0, 0.0]])
    codes, scales = quantise_rows(rows)
    assert codes.tolist() == [[127, 0, 2, -127], [0, 0, 0, 0]]
    assert scales[0] == 2
    assert (scales > 0).all()


@pytest.mark.parametrize("bits", [16, 8])
def test_bytes_are_known_before_anything_is_allocated(bits):
    cache = new_device_cache(3, 2, 7, 80, "cpu", bits)
    assert (cache.bits, cache.layers, cache.context) == (bits, 3, 7)
    assert cache.nbytes == 7 * cache_bytes_per_token(3, 2, 80, bits)
    assert cache_bytes_per_token(32, 8, 128) == 131072


def test_what_does_not_fit_is_refused():
    layer = new_device_cache(1, 2, 8, 16, "cpu").layer(0)
    with pytest.raises(ValueError, match="do not fit a cache"):
        layer.write(6, _rows(2, 3, 16), _rows(2, 3, 16))
    with pytest.raises(ValueError, match="do not fit a cache"):
        layer.write(0, _rows(2, 3, 16), _rows(2, 4, 16))
    with pytest.raises(ValueError, match="does not end at 9"):
        layer.visible(9)
    with pytest.raises(ValueError, match="not 4"):
        new_device_cache(1, 2, 8, 16, "cpu", bits=4)
    with pytest.raises(ValueError, match="has scales"):
        LayerCache(layer.keys.to(torch.int8), layer.values.to(torch.int8))
    with pytest.raises(ValueError, match=r"not torch\.float32"):
        LayerCache(layer.keys.float(), layer.values.float())
    with pytest.raises(ValueError, match="contiguous"):
        DeviceCache(layer.keys, layer.values)


def test_splits_fill_a_device_but_no_head_has_too_many():
    assert new_attention_scratch(2, 4, 128, "cpu").partial.shape == (2, 16, 4, 128)
    assert new_attention_scratch(32, 1, 80, "cpu").partial.shape == (32, 1, 1, 128)
    assert new_attention_scratch(1, 7, 64, "cpu").partial.shape == (1, 32, 8, 64)


def test_scratch_that_cannot_work_is_refused():
    with pytest.raises(ValueError, match="not 17"):
        new_attention_scratch(1, 17, 64, "cpu")
    with pytest.raises(ValueError, match="not 258"):
        new_attention_scratch(1, 1, 258, "cpu")
    with pytest.raises(ValueError, match="a power of two"):
        new_attention_scratch(1, 1, 64, "cpu", splits=3)
    good = new_attention_scratch(1, 1, 64, "cpu")
    with pytest.raises(ValueError, match="do not fit"):
        AttentionScratch(good.partial, good.weights, good.arrived[:0])
