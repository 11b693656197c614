"""The picture of `inspect`, and the counts it is drawn from."""

import json

import pytest
import torch
from PIL import Image

from kernels.int8x import adaptive_reference, histogram
from runtime.errors import DecdecError
from runtime.int8x import CodecChoice, Int8xReader, jobs
from runtime.int8x.tally import Tally
from runtime.progress import JobContext
from tests.runtime.int8x.conftest import draw, write_model

QUIET = JobContext.silent()
W = "model.layers.0.mlp.up_proj.weight"


def tallied(folder, choice):
    weight = draw(70, 90, 1, tail=6) * torch.logspace(0, 2, 70)[:, None]
    reader = Int8xReader(write_model(folder, {W: weight}, choice=choice))
    tally, q = Tally(), reader.quantised(W).q
    tally.add(reader.coded_entry(W), q, reader.parts(W))
    tally.add(reader.coded_entry(W), q, reader.parts(W))
    assert torch.equal(sum(tally.streams.values()), 2 * histogram(q))
    return tally, q


def test_values_by_level_of_bitmaps(tmp_path):
    tally, q = tallied(tmp_path, CodecChoice("bitmap", (3, 5, 8)))
    magnitude = q.int().abs()
    assert list(tally.streams) == ["level of 3 bits", "level of 5 bits", "level of 8 bits"]
    middle = q[(magnitude > 3) & (magnitude <= 15)]
    assert torch.equal(tally.streams["level of 5 bits"], 2 * histogram(middle))
    assert tally.widths == {
        3: 2 * (magnitude <= 3).sum(),
        5: 2 * middle.numel(),
        8: 2 * (magnitude > 15).sum(),
    }


def test_values_by_stream_of_adaptive_planes(tmp_path):
    tally, q = tallied(tmp_path, CodecChoice("adaptive"))
    expected = {name: torch.zeros(256, dtype=torch.int64) for name in ("plane", "short codes", "bytes")}
    widths = {}
    for rows in q[q.long().abs().sum(1).argsort(stable=True)].long().split(16):
        values = rows.reshape(-1)
        width, short_width = adaptive_reference.best_widths(values)
        codes, short, tail = adaptive_reference.code_group(values, width, short_width)
        escaped = codes == 2**width - 1 if width < 8 else torch.zeros_like(codes, dtype=torch.bool)
        followed = short == 2**short_width - 1 if short_width else torch.ones(len(tail), dtype=torch.bool)
        lost = values[escaped]
        for name, part in [("plane", values[~escaped]), ("short codes", lost[~followed]), ("bytes", tail)]:
            expected[name] += 2 * histogram(part.to(torch.int8))
        widths[width] = widths.get(width, 0) + 2 * values.numel()
    assert tally.widths == widths
    assert len(widths) > 2
    for name, counts in expected.items():
        assert torch.equal(tally.streams[name], counts), name


def test_raw_bytes_are_one_stream(tmp_path):
    assert list(tallied(tmp_path, CodecChoice("raw"))[0].streams) == ["raw"]


@pytest.mark.parametrize("suffix", [".png", ".PNG"])
def test_a_png_is_drawn(coded, tmp_path, suffix):
    picture = tmp_path / f"model{suffix}"
    jobs.inspect({"model": str(coded), "plot": str(picture)}, QUIET)
    with Image.open(picture) as image:
        assert image.format == "PNG"
        assert image.width > 1500
        assert len(image.convert("RGB").getcolors(1 << 24)) > 50


def test_an_svg_names_its_axes_kinds_and_streams(coded, tmp_path):
    picture = tmp_path / "model.svg"
    result = jobs.inspect({"model": str(coded), "plot": str(picture)}, QUIET)
    text = picture.read_text()
    raw = 16 * 40 / result["total"]["weights"]
    for label in ("entropy, bit/w", "stored size, bit/w", "INT8 weight q", "Huffman", "q_proj", "down_proj"):
        assert f"<!-- {label} -->" in text
    assert f"<!-- raw: {raw:.1%} -->" in text
    assert f"{result['total']['bits_per_weight']:.3f} bit/w" in text


def test_inspecting_with_a_picture_says_the_same(coded, tmp_path):
    plain = jobs.inspect({"model": str(coded)}, QUIET)
    drawn = jobs.inspect({"model": str(coded), "plot": str(tmp_path / "x.svg")}, QUIET)
    assert json.dumps(plain) == json.dumps(drawn)


@pytest.mark.parametrize("name", ["model.pdf", "model", "model.svg.gz"])
def test_other_kinds_of_pictures_are_wrong_usage(coded, tmp_path, name):
    with pytest.raises(DecdecError, match=r"\.svg nor \.png") as error:
        jobs.inspect({"model": str(coded), "plot": str(tmp_path / name)}, QUIET)
    assert error.value.code == 2


def test_a_folder_that_is_not_there_is_a_sentence(coded, tmp_path):
    with pytest.raises(DecdecError, match="nowhere"):
        jobs.inspect({"model": str(coded), "plot": str(tmp_path / "nowhere" / "x.png")}, QUIET)
