"""Which codec a tensor gets."""

import json

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.int8x import AdaptivePlan, Scales, best_levels, encode, encode_adaptive, histogram
from runtime.errors import DecdecError
from runtime.int8x import CodecChoice, Int8xReader, Int8xWriter, jobs
from runtime.progress import JobContext
from tests.runtime.int8x.conftest import PAPER, draw, write_model

QUIET = JobContext.silent()


def matrix(n_out, n_in, spread, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.exp(torch.randn(n_out, 1, generator=generator)) * spread
    return (torch.randn(n_out, n_in, generator=generator) * rows).round().clamp(-127, 127).to(torch.int8)


@given(st.integers(1, 80), st.integers(1, 200), st.sampled_from([0.0, 0.7, 3.0, 9.0, 1e4]), st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_the_smallest_of_all_real_sizes_is_taken(n_out, n_in, spread, seed):
    q = matrix(n_out, n_in, spread, seed)
    sizes = {
        "raw": q.numel(),
        "bitmap": encode(q, best_levels(histogram(q))).nbytes,
        "adaptive": encode_adaptive(q).nbytes,
    }
    form = CodecChoice().form(q)
    taken = "raw" if form is None else "adaptive" if isinstance(form, AdaptivePlan) else "bitmap"
    assert sizes[taken] == min(sizes.values())


@pytest.mark.parametrize("codec", ["adaptive", "bitmap", "raw"])
def test_a_forced_codec_is_used_for_every_tensor(source, tmp_path, codec):
    args = {"source": str(source), "destination": str(tmp_path / "coded"), "quality": PAPER, "codec": codec}
    result = jobs.encode(args, QUIET)
    assert result["codecs"] == {codec: 3}
    assert (result["codec"], result["levels"]) == (codec, None)
    assert jobs.verify({"model": str(tmp_path / "coded"), "source": str(source)}, QUIET)["lossless"]
    config = Int8xReader(tmp_path / "coded").config["quantization_config"]
    assert (config["codec"], config["format_version"]) == (codec, 2)


def test_levels_alone_mean_bitmaps(source, tmp_path):
    args = {"source": str(source), "destination": str(tmp_path / "coded"), "quality": PAPER, "levels": [4, 8]}
    result = jobs.encode(args, QUIET)
    assert (result["codec"], result["levels"], result["codecs"]) == ("bitmap", [4, 8], {"bitmap": 3})


def test_levels_that_cannot_hold_a_tensor_name_it(tmp_path):
    with pytest.raises(DecdecError, match="do not hold every weight") as error:
        write_model(tmp_path, {"model.big.weight": draw(30, 40, 1)}, choice=CodecChoice("bitmap", (3, 5)))
    assert "model.big.weight" in error.value.sentence


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"codec": "zip"}, "zip"),
        ({"codec": "adaptive", "levels": [3, 8]}, "bitmap"),
        ({"levels": [8]}, "levels"),
        ({"levels": [3, 9]}, "1 to 8"),
        ({"levels": [5, 3, 8]}, "rise"),
    ],
)
def test_impossible_choices_are_wrong_usage(source, tmp_path, arguments, why):
    with pytest.raises(DecdecError, match=why) as error:
        jobs.encode(
            {"source": str(source), "destination": str(tmp_path / "x"), "quality": PAPER, **arguments}, QUIET
        )
    assert error.value.code == 2


@given(
    st.integers(1, 40),
    st.integers(1, 90),
    st.sampled_from([0.0, 0.7, 3.0, 9.0, 1e4]),
    st.sampled_from(["auto", "adaptive", "bitmap", "raw"]),
    st.integers(0, 9),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_codec_brings_back_every_int8_value(tmp_path, n_out, n_in, spread, codec, seed):
    q = matrix(n_out, n_in, spread, seed)
    q.view(-1)[0] = -128
    folder = tmp_path / f"{n_out}-{n_in}-{spread}-{codec}-{seed}"
    writer = Int8xWriter(folder, choice=CodecChoice(codec))
    writer.add_quantised("w", q, Scales("tensor", torch.ones(1)))
    config = {"model_type": "llama", "quantization_config": writer.finish()}
    (folder / "config.json").write_text(json.dumps(config))
    assert torch.equal(Int8xReader(folder).quantised("w").q, q)
