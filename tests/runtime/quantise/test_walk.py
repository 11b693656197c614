"""The walk over blocks against transformers' own activations."""

import pytest
import torch

from runtime.checkpoint import open_checkpoint
from runtime.errors import Interrupted
from runtime.layers.base import LINEAR_KINDS
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.quantise.walk import walk
from tests.runtime.model.tiny import tiny_model

SILENT = JobContext.silent()
TEXTS = [torch.arange(7) * 5 % 97, torch.arange(4)]
NAMES = {
    "qkv": "self_attn.q_proj",
    "o": "self_attn.o_proj",
    "gate_up": "mlp.up_proj",
    "down": "mlp.down_proj",
}


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    monkeypatch.setattr("runtime.quantise.walk.compute_type", lambda: torch.float32)


@pytest.fixture(scope="module")
def tiny():
    return tiny_model("llama")[0].eval()


@pytest.fixture
def source(tiny, tmp_path):
    tiny.save_pretrained(tmp_path)
    return SourceModel(open_checkpoint(tmp_path))


@torch.no_grad()
def test_inputs_are_those_of_transformers(tiny, source):
    seen, hooks = {}, []
    for name, module in tiny.named_modules():
        keep = seen.setdefault(name, [])
        hooks.append(module.register_forward_pre_hook(lambda m, args, keep=keep: keep.extend(args[:1])))
    for text in TEXTS:
        tiny(text[None], use_cache=False)
    for hook in hooks:
        hook.remove()
    blocks = list(walk(source, TEXTS, SILENT))
    assert [block.index for block in blocks] == list(range(len(source.spec.layers)))
    for block in blocks:
        for kind in LINEAR_KINDS:
            expected = torch.cat([x[0] for x in seen[f"model.layers.{block.index}.{NAMES[kind]}"]])
            assert torch.allclose(block.inputs[kind].inputs.float(), expected, rtol=2**-8, atol=1e-5)
            assert torch.equal(block.weights[kind], torch.cat(source.parts(block.index)[kind]))


@torch.no_grad()
def test_a_walk_from_the_middle_sees_the_same(source):
    whole = list(walk(source, TEXTS, SILENT))
    rest = list(walk(source, TEXTS, SILENT, start=1))
    assert [block.index for block in rest] == [block.index for block in whole][1:]
    for kind in LINEAR_KINDS:
        assert torch.equal(rest[0].inputs[kind].inputs, whole[1].inputs[kind].inputs)


@torch.no_grad()
def test_progress_in_blocks_and_stops_when_asked(source):
    events = []
    list(walk(source, TEXTS, JobContext("prepare", events.append, lambda: False)))
    assert (events[-1].step, events[-1].done, events[-1].unit) == (
        "quantise",
        len(source.spec.layers),
        "blocks",
    )
    with pytest.raises(Interrupted):
        list(walk(source, TEXTS, JobContext("prepare", events.append, lambda: True)))
