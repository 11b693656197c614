"""What `inspect` says of every codec, recounted from the decoded weights."""

import pytest
import torch

from kernels.int8x import adaptive_reference
from runtime.int8x import Int8xReader, jobs
from runtime.progress import JobContext
from tests.runtime.int8x.conftest import PAPER

QUIET = JobContext.silent()
Q = "model.layers.0.self_attn.q_proj.weight"


def inspected(source, folder, **options):
    jobs.encode({"source": str(source), "destination": str(folder), "quality": PAPER, **options}, QUIET)
    result = jobs.inspect({"model": str(folder)}, QUIET)
    q_proj = next(tensor for tensor in result["tensors"] if tensor["name"] == Q)
    return result, q_proj, Int8xReader(folder).quantised(Q).q


def test_levels_of_bitmaps(source, tmp_path):
    result, q_proj, q = inspected(source, tmp_path / "coded", levels=[3, 5, 8])
    magnitude = q.int().abs()
    low, middle = int((magnitude <= 3).sum()), int(((magnitude > 3) & (magnitude <= 15)).sum())
    high = q.numel() - low - middle
    assert q_proj["share"] == {"3": low / q.numel(), "5": middle / q.numel(), "8": high / q.numel()}
    bits = (q.numel(), middle + high, 3 * low, 5 * middle, 8 * high)
    stored = 32 + 2 * 3 * 32 + sum(32 * -(-size // 32) for size in bits)
    assert q_proj["bits_per_weight"] == stored / q.numel()
    assert {(tensor["codec"], tensor["levels"]) for tensor in result["tensors"]} == {("bitmap", (3, 5, 8))}
    assert result["total"]["codecs"] == {"bitmap (3,5,8)": 3}


def test_streams_of_adaptive_planes(source, tmp_path):
    result, q_proj, q = inspected(source, tmp_path / "coded", codec="adaptive")
    coded, short_bits, plane_bits = torch.zeros(3), 0, 0
    for values in q[q.long().abs().sum(1).argsort(stable=True)].long().split(16):
        width, short_width = adaptive_reference.best_widths(values.reshape(-1))
        codes, short, tail = adaptive_reference.code_group(values.reshape(-1), width, short_width)
        escapes = int((codes == 2**width - 1).sum()) if width < 8 else 0
        coded += torch.tensor([codes.numel() - escapes, escapes - tail.numel(), tail.numel()])
        plane_bits += width * codes.numel()
        short_bits += short_width * short.numel()
    share = dict(zip(("plane", "short", "byte"), (coded / q.numel()).tolist(), strict=True))
    assert q_proj["share"] == pytest.approx(share)
    shorts = adaptive_reference.encode(q).short_counts.long().sum().item()
    assert q_proj["mean_widths"] == pytest.approx(
        {"plane": plane_bits / q.numel(), "short": short_bits / shorts}
    )
    assert result["total"]["codecs"] == {"adaptive": 3}


def test_totals_of_several_codecs(coded):
    result = jobs.inspect({"model": str(coded)}, QUIET)
    total = result["total"]
    assert total["weights"] == sum(kind["weights"] for kind in result["kinds"]) == 130 * 48 + 64 * 48 + 640
    assert result["decoder_linears"]["tensors"] == 2
    assert (sum(total["codecs"].values()), total["codecs"]["raw"]) == (3, 1)
    assert sum(total["share"].values()) == pytest.approx(1)
    bits = sum(tensor["bits_per_weight"] * tensor["weights"] for tensor in result["tensors"])
    assert total["bits_per_weight"] == pytest.approx(bits / total["weights"])
    kind = next(kind for kind in result["kinds"] if kind["kind"] == "q_proj")
    tensor = next(tensor for tensor in result["tensors"] if tensor["name"] == Q)
    assert kind["share"] == pytest.approx(tensor["share"])
    assert kind["mean_widths"] == pytest.approx(tensor["mean_widths"])
