"""The digits of an attention's outputs: the same values as by the kernel that combines them itself."""

import pytest
import torch

from kernels.gpu.attention.attended import Attended, prepare_attended
from kernels.gpu.attention.cache import new_device_cache
from kernels.gpu.attention.decode import decode_attention
from kernels.gpu.attention.scratch import new_attention_scratch
from kernels.gpu.prepare import new_prepared
from kernels.gpu.reference import digit_values

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CONTEXT = 96


@pytest.mark.parametrize(("heads", "group", "head_dim"), [(2, 3, 16), (1, 4, 80), (3, 8, 64)])
@pytest.mark.parametrize(("position", "window"), [(0, None), (3, None), (40, None), (95, None), (90, 30)])
@pytest.mark.parametrize("factored", [False, True])
def test_digits_are_those_of_the_combined_outputs(heads, group, head_dim, position, window, factored):
    generator = torch.Generator().manual_seed(position)
    cache = new_device_cache(1, heads, CONTEXT, head_dim, DEVICE).layer(0)
    rows = torch.randn(2, heads, position, head_dim, generator=generator).to(DEVICE)
    cache.write(0, rows[0], rows[1])
    size = heads * group * head_dim
    qkv = torch.randn(1, size + 2 * heads * head_dim, generator=generator).to(DEVICE)
    rope = tuple(torch.rand(CONTEXT, head_dim // 2, generator=generator).to(DEVICE) for _ in range(2))
    place = torch.tensor([position], dtype=torch.int32, device=DEVICE)
    scratch = new_attention_scratch(heads, group, head_dim, DEVICE, splits=8, share=8)
    given = {"scale": head_dim**-0.5, "window": window}
    exact = torch.empty(1, size, device=DEVICE)
    decode_attention(qkv, cache, place, rope, exact, scratch, **given)
    scratch.partial.fill_(torch.nan)
    untouched = torch.full_like(exact, torch.nan)
    decode_attention(qkv, cache, place, rope, untouched, scratch, combine=False, **given)
    assert untouched.isnan().all()
    factors = torch.rand(size, generator=generator).to(DEVICE) + 0.5 if factored else None
    attended = Attended(scratch, place, window, group, head_dim)
    found = prepare_attended(attended, new_prepared(1, size, DEVICE), factors)
    wanted = exact if factors is None else exact * factors
    torch.testing.assert_close(digit_values(found).float(), wanted, rtol=2e-6, atol=2e-7)
    sums = torch.nn.functional.pad(wanted, (0, -size % 128)).view(1, -1, 128).sum(2)
    torch.testing.assert_close(found.group_sums[:, : sums.shape[1]], sums, rtol=1e-5, atol=1e-5)
    assert not found.digits[-(-size // 128) :].any()


def test_what_does_not_fit_is_refused():
    scratch = new_attention_scratch(2, 1, 16, DEVICE, splits=2)
    attended = Attended(scratch, torch.zeros(1, dtype=torch.int32, device=DEVICE), None, 1, 16)
    with pytest.raises(ValueError, match="do not take 32"):
        prepare_attended(attended, new_prepared(1, 40, DEVICE))
    with pytest.raises(ValueError, match="factor of 31"):
        prepare_attended(attended, new_prepared(1, 32, DEVICE), torch.ones(31, device=DEVICE))
