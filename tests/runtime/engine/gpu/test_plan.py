"""What is chosen for so much memory, and what is said where there is too little."""

from dataclasses import replace

import pytest

from runtime.engine.gpu import plan as module
from runtime.engine.gpu.contents import expected_contents
from runtime.engine.gpu.footprint import FASTEST, SMALLEST
from runtime.engine.gpu.memory_plan import RESERVE_BYTES
from runtime.engine.gpu.plan import CHUNKS, COMFORTABLE_CONTEXT, Wishes, fitting_base, make_plan
from runtime.errors import DecdecError
from runtime.model.spec import ModelSpec

GB = 10**9
LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
}
WEIGHTS_8B = 32 * 4096 * (6144 + 4096 + 3 * 14336)


def spec(**changes):
    return ModelSpec.from_config({**LLAMA_8B, **changes})


ANYTHING = Wishes()


def least(base="awq4", wishes=ANYTHING):
    """Gigabytes that a model takes at the least."""
    try:
        plan(0.01, base, wishes)
    except DecdecError as error:
        return float(error.why.split("needs ")[1].split(" GB")[0]) + 0.01


def plan(gigabytes, base="awq4", wishes=ANYTHING):
    return make_plan(expected_contents(spec(), base), int(gigabytes * GB), wishes)


def test_parts_are_what_shapes_tell():
    found = plan(140, wishes=Wishes(context=8192))
    assert sum(found.base.values()) == pytest.approx(WEIGHTS_8B * 4.25 / 8, rel=0.002)
    assert found.cache == pytest.approx(8192 * 2 * 32 * 8 * 128 * 2, rel=1e-4)
    assert found.lossless == pytest.approx(WEIGHTS_8B * 5.95 / 8, rel=0.01)
    assert found.head == pytest.approx(128256 * 4096, rel=0.05)
    assert found.ropes == 2 * 4 * 8192 * 64
    assert found.total == found.weights + found.cache + found.prefill + found.step
    assert found.needed == found.total + RESERVE_BYTES


def test_much_memory_brings_everything():
    found = plan(140)
    setting = found.setting
    assert (setting.context, setting.head_bits, setting.lossless) == (131072, 8, FASTEST)
    assert (setting.packing, setting.chunk, setting.kv_bits) == (FASTEST, CHUNKS[-1], 16)


def test_little_memory_goes_where_it_helps_most():
    sizes = [least() - 0.1 + 0.1 * n for n in range(50)]
    plans = []
    for size in sizes:
        try:
            plans.append(plan(size))
        except DecdecError:
            assert not plans
    assert all(each.needed <= each.free for each in plans)
    first, last = plans[0].setting, plans[-1].setting
    assert (first.head_bits, first.packing, first.lossless) == (6, SMALLEST, None)
    assert first.context < COMFORTABLE_CONTEXT < last.context
    assert last.head_bits == 8
    for each in plans:
        assert each.setting.context >= COMFORTABLE_CONTEXT or each.setting.head_bits == 6
        assert each.setting.head_bits == 8 or each.setting.lossless is None


def test_the_longest_context_that_fits_is_taken():
    found = plan(8, wishes=Wishes(lossless=False))
    context = found.setting.context
    assert COMFORTABLE_CONTEXT < context < 131072
    contents = expected_contents(spec(), "awq4")
    longer = replace(found.setting, context=context + module.CONTEXT_STEP)
    assert not module.lay_out(contents, longer, found.free).fits
    narrow = plan(8, wishes=Wishes(lossless=False, kv_bits=8)).setting
    assert 1.4 * context < narrow.context < 2 * context


def test_the_lossless_linears_are_held_where_they_fit_and_are_wanted():
    assert plan(9).setting.lossless is None
    assert plan(13).setting.lossless is not None
    assert plan(140, wishes=Wishes(lossless=False)).lossless == 0
    assert plan(140, base="int8").setting.lossless is None


def test_planes_are_packed_fast_where_there_is_room():
    tight, wide = plan(least("int8x3.4"), "int8x3.4"), plan(24, "int8x3.4")
    assert (tight.setting.packing, wide.setting.packing) == (SMALLEST, FASTEST)
    assert 0.8 < sum(tight.base.values()) / sum(wide.base.values()) < 0.9


def test_an_asked_context_is_kept_or_refused():
    assert plan(24, wishes=Wishes(context=1000)).setting.context == 1000
    with pytest.raises(DecdecError, match=r"allows 131072.*at most 131072"):
        plan(24, wishes=Wishes(context=131073))


def test_a_short_limit_is_the_context():
    short = spec(max_position_embeddings=300)
    assert make_plan(expected_contents(short, "awq4"), 24 * GB).setting.context == 300


def refusal(gigabytes, base="awq4", wishes=ANYTHING):
    with pytest.raises(DecdecError, match="The model does not fit on the GPU") as caught:
        plan(gigabytes, base, wishes)
    assert f"{gigabytes:.2f} GB are free" in caught.value.sentence
    assert caught.value.sentence.endswith("or set DECDEC_DEVICE=cpu.")
    return caught.value


def test_what_does_not_fit_is_refused_with_numbers_and_with_what_would():
    asked = refusal(8, wishes=Wishes(context=100_000))
    assert "with awq4 and a context of 100000 tokens it needs 17." in asked.why
    assert "ask for a context of at most 2" in asked.fix
    longer = Wishes(context=6000)
    narrow = refusal(least(wishes=longer) - 0.1, wishes=longer)
    assert all(words in narrow.fix for words in ("at most 5", "--kv-bits 8", "the base int8x3.4"))
    assert "context" not in refusal(least() - 0.2).fix


def test_a_base_that_fits_is_offered():
    assert "take the base int8x3.4," in refusal(least("int8x3.4")).fix
    assert "take the base int8x3," in refusal(least("int8x3")).fix
    assert "take the base awq4," in refusal(least("awq4"), "int8").fix
    assert "base" not in refusal(2).fix


def test_what_a_refusal_offers_fits():
    with pytest.raises(DecdecError) as caught:
        plan(8, wishes=Wishes(context=100_000))
    offered = int(caught.value.fix.split("at most ")[1].split(",")[0])
    assert plan(8, wishes=Wishes(context=offered)).fits
    with pytest.raises(DecdecError):
        plan(8, wishes=Wishes(context=offered + module.CONTEXT_STEP))


def test_the_best_base_that_fits_is_named():
    sizes = [least(base) for base in ("int8x3", "int8x3.4", "awq4")]
    assert sizes == sorted(sizes)
    assert [fitting_base(spec(), int(size * GB)) for size in sizes] == ["int8x3", "int8x3.4", "awq4"]
    assert fitting_base(spec(), int(sizes[0] * GB) - 10**8) is None
