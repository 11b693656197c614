"""What a prompt takes is what the plan was told."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from kernels.gpu.attention.cache import new_device_cache
from runtime.engine.gpu import panels, prefill_attention
from runtime.engine.gpu.prefill import Prefill
from runtime.engine.gpu.prefill_memory import prefill_memory
from runtime.model.decoder import causal_mask
from runtime.model.rope import RopeSpec
from runtime.model.spec import LayerSpec, ModelSpec
from tests.runtime.engine.gpu.device_models import device_model

CUDA = torch.cuda.is_available()
MIB = 1 << 20


class Peak(TorchDispatchMode):
    """The most bytes that tensors made meanwhile held at once; what kernels take for themselves is unseen."""

    def __init__(self):
        super().__init__()
        self.bytes, self._alive = 0, WeakIdKeyDictionary()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        given = {place for place, _ in storages((args, kwargs))} - self._held().keys()
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in given:
                self._alive[tensor] = None
        self.bytes = max(self.bytes, sum(self._held().values()))
        return made

    def _held(self):
        return dict(storages(list(self._alive)))


def storages(values):
    """Address and bytes of what each tensor among the values lies in."""
    tensors = [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]
    return [(t.untyped_storage().data_ptr(), t.untyped_storage().nbytes()) for t in tensors]


def llama3_8b():
    rope = RopeSpec(128, tuple([1.0] * 64))
    return ModelSpec(
        family="llama", vocab_size=128256, hidden=4096, intermediate=14336, n_heads=32, n_kv_heads=8,
        head_dim=128, norm_eps=1e-5, norm_offset=0.0, activation="silu", tied=False, attention_scale=0.088,
        embedding_scale=1.0, qk_norm=False, post_norms=False, context=8192,
        layers=(LayerSpec(None, 0),) * 32, ropes=(rope,),
    )  # fmt: skip


def test_a_model_of_eight_billion_weights():
    memory = prefill_memory(llama3_8b(), 512)
    assert memory.panels == 32 * MIB
    assert memory.residuals == 2 * 1024 * 28672 // 2
    assert memory.sums == 512 * 28672 * 4
    assert memory.working < 60 * MIB
    assert memory.total == memory.panels + memory.residuals + memory.sums + memory.working


def test_what_makes_it_more():
    spec = llama3_8b()
    least = prefill_memory(spec, 512, context=1024, corrected=False).total
    assert prefill_memory(spec, 512, context=1024).total - least == 2 * 1024 * 28672 // 2
    assert prefill_memory(spec, 512, context=8192, corrected=False).total == least
    quantised = prefill_memory(spec, 512, context=8192, corrected=False, cache_bits=8).total
    assert quantised - least == pytest.approx(12 * 8192 * 1024 - 8 * 512 * 4096, abs=40 * MIB)
    assert prefill_memory(spec, 1024, context=1024, corrected=False).total > 1.6 * least


@pytest.mark.parametrize(
    ("family", "bits"), [("llama", 16), ("mistral-window", 8), ("qwen3", 16), ("gemma3", 8)]
)
def test_no_chunk_takes_more_than_was_said(family, bits, monkeypatch):
    # A CPU multiplies in float32, with copies that a GPU does without.
    monkeypatch.setattr(panels, "add_product", lambda out, *_, **__: out.fill_(0.1))
    model = device_model(family, "dense", num_hidden_layers=2, context=64).model
    spec = model.spec
    # torch's own bias cannot be made while tensors are counted; a plain mask is more.
    plain = lambda n, end: causal_mask(end - n, n, None, model.device)  # noqa: E731
    monkeypatch.setattr(prefill_attention, "causal_lower_right", plain)
    cache = new_device_cache(2, spec.n_kv_heads, 64, spec.head_dim, model.device, bits)
    prompt = Prefill(model, cache, corrected=True, chunk=24)
    with Peak() as peak:
        prompt.run(list(range(48)), 0, lambda: None)
    assert peak.bytes <= prompt.memory.working
    assert peak.bytes > prompt.memory.working / 2


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_a_gpu_gives_no_more_than_was_said():
    model = device_model("llama", "awq4", num_hidden_layers=2, context=512, hidden_size=768).model
    spec = model.spec
    cache = new_device_cache(2, spec.n_kv_heads, 512, spec.head_dim, model.device)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    prompt = Prefill(model, cache, corrected=True, chunk=256)
    prompt.run([5] * 512, 0, lambda: None)
    # cuBLAS has a workspace of its own.
    assert torch.cuda.max_memory_allocated() - before <= prompt.memory.total + 40 * MIB
