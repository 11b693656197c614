"""Where an evaluation computes."""

import pytest
import torch

from runtime.errors import DecdecError
from runtime.evaluate.runner import STATE_BYTES, Runner, compute_device
from runtime.model.source import SourceModel

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("wanted", ["", "cpu", "CPU"])
def test_the_processor_computes_unless_told(monkeypatch, wanted):
    monkeypatch.setenv("DECDEC_DEVICE", wanted)
    assert compute_device() == torch.device("cpu")


@pytest.mark.parametrize(("wanted", "words"), [("cuda:99", "number 99"), ("tpu", "cuda")])
def test_a_device_that_is_not_there_is_refused(monkeypatch, wanted, words):
    monkeypatch.setenv("DECDEC_DEVICE", wanted)
    with pytest.raises(DecdecError, match=words):
        compute_device()


def test_a_runner_gives_the_decoder_s_logits(folder, model, tokens):
    runner = Runner(SourceModel.open(folder), torch.device("cpu"))
    with torch.inference_mode():
        h = runner.embed(tokens[0])
        for index in range(len(runner.model.spec.layers)):
            block = runner.block(index)
            parts = runner.model.parts(index)
            block.linears = {kind: _Plain(torch.cat(part)) for kind, part in parts.items()}
            h = runner.step(block, h)
        wanted = model(tokens[:1]).logits[0]
        torch.testing.assert_close(runner.logits(h), wanted, atol=1e-4, rtol=1e-4)
    assert runner.state_bytes() >= STATE_BYTES


class _Plain:
    def __init__(self, weight):
        self.weight = weight

    def prefill(self, x):
        return x @ self.weight.t()


@needs_gpu
def test_a_gpu_finds_what_the_processor_finds(folder, text, evaluate, monkeypatch):
    args = {
        "base": ["rtn3", "awq3", "int8x4"],
        "k_chunk": [0, 64],
        "select": ["bucket", "exact", "static"],
        "residual_bits": [4, "exact"],
        "prompt": 4,
    }
    here = evaluate(folder, text, **args)["rows"]
    monkeypatch.setenv("DECDEC_DEVICE", "cuda")
    there = evaluate(folder, text, **args)
    assert there["device"] == "cuda:0"
    for one, other in zip(here, there["rows"], strict=True):
        # AWQ's search turns on last bits of its inputs: here 1e-7 of noise moves the KL by 2 %, 1e-6 by 4 %.
        kl, recall = (0.1, 0.06) if one["name"] == "awq3" else (0.01, 0.02)
        assert one["kl"] == pytest.approx(other["kl"], rel=kl, abs=1e-5)
        assert one["recall"] == pytest.approx(other["recall"], abs=recall)
