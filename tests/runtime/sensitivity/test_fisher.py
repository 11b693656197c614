"""Sensitivities against transformers' own gradients, and against the KL that real noise causes."""

import pytest
import torch

from runtime import sensitivity
from runtime.checkpoint import open_checkpoint
from runtime.errors import Interrupted
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.dense import Dense
from runtime.model.build import build_dense
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.sensitivity import Sensitivity, fisher
from tests.runtime.model.tiny import tiny_model

SILENT = JobContext.silent()
PLACES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    monkeypatch.setattr(fisher, "compute_type", lambda: torch.float32)


def texts(count, length, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 97, (length,), generator=generator) for _ in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tiny_model("llama")[0].save_pretrained(path)
    return path


@pytest.fixture
def source(folder):
    return SourceModel(open_checkpoint(folder))


def gradients_of_transformers(model, batches):
    """Sums of g^2 and x^2 products per linear and token, labels drawn as documented."""
    outputs, inputs, seen = {}, {}, {}

    def note(name):
        def hook(module, args, out):
            out.retain_grad()
            seen[name] = args[0][0].detach(), out

        return hook

    linears = {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and "layers" in n}
    handles = [m.register_forward_hook(note(n)) for n, m in linears.items()]
    for number, batch in enumerate(batches):
        log_p = model(batch[None]).logits[0].log_softmax(-1)
        generator = torch.Generator().manual_seed(fisher.SEED + number)
        labels = torch.multinomial(log_p.detach().exp(), 1, generator=generator)
        log_p.gather(1, labels).sum().backward()
        for name, (x, out) in seen.items():
            products = torch.einsum("to,ti->oi", out.grad[0].double() ** 2, x.double() ** 2)
            outputs[name] = outputs.get(name, 0) + products.sum(1)
            inputs[name] = inputs.get(name, 0) + products.sum(0)
    for handle in handles:
        handle.remove()
    return outputs, inputs


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen2"])
def test_sums_are_those_of_transformers_gradients(family, tmp_path):
    model = tiny_model(family)[0]
    model.save_pretrained(tmp_path)
    batches = texts(3, 20)
    found = sensitivity.measure(SourceModel(open_checkpoint(tmp_path)), batches, SILENT)
    outputs, inputs = gradients_of_transformers(model, batches)
    tokens = sum(map(len, batches))
    for index, block in enumerate(found):
        for kind in LINEAR_KINDS:
            names = [f"model.layers.{index}.{part}" for part in PLACES[kind]]
            rows = torch.cat([outputs[name] for name in names]) / tokens
            columns = sum(inputs[name] for name in names) / tokens
            torch.testing.assert_close(block[kind].outputs.double(), rows, rtol=2e-3, atol=1e-9)
            torch.testing.assert_close(block[kind].inputs.double(), columns, rtol=2e-3, atol=1e-9)


def test_every_weight_adds_up_to_the_sums(source):
    blocks = {}
    found = sensitivity.measure(source, texts(3, 20), SILENT, blocks.__setitem__)
    assert list(blocks) == list(reversed(range(len(found))))
    for index, block in enumerate(found):
        for kind in LINEAR_KINDS:
            each = blocks[index][kind]
            torch.testing.assert_close(each.sum(1), block[kind].outputs, rtol=1e-4, atol=1e-9)
            torch.testing.assert_close(each.sum(0), block[kind].inputs, rtol=1e-4, atol=1e-9)


def test_one_token_has_the_fisher_information_of_a_product(source):
    """For a single token F[o, i] is g[o]^2 x[i]^2 and nothing else: a matrix of rank one."""
    blocks = {}
    found = sensitivity.measure(source, texts(1, 1), SILENT, blocks.__setitem__)
    for kind, one in found[0].items():
        expected = one.outputs[:, None] * one.inputs / one.total if one.total else torch.zeros(())
        torch.testing.assert_close(
            blocks[0][kind], expected.expand(blocks[0][kind].shape), rtol=1e-4, atol=1e-12
        )


def test_small_noise_costs_the_kl_that_is_predicted(folder, source):
    batches = texts(12, 60)
    found = sensitivity.measure(source, batches, SILENT)
    decoder, generator = build_dense(source.checkpoint), torch.Generator().manual_seed(0)
    with torch.no_grad():
        reference = [decoder.forward(text).log_softmax(-1) for text in batches]
    predicted = 0.0
    for block, own in zip(decoder.blocks, found, strict=True):
        for kind in LINEAR_KINDS:
            weight = block.linears[kind].weight
            share = own[kind].outputs[:, None] * own[kind].inputs / own[kind].total
            spread = 0.01 * torch.rand(weight.shape, generator=generator)
            predicted += float((share * spread**2).sum()) / 2
            noise = torch.randn(weight.shape, generator=generator) * spread
            block.linears[kind] = Dense(weight + noise)
    kl = []
    with torch.no_grad():
        for text, r in zip(batches, reference, strict=True):
            kl.append((r.exp() * (r - decoder.forward(text).log_softmax(-1))).sum(-1).mean())
    assert float(torch.stack(kl).mean()) == pytest.approx(predicted, rel=0.5)


def test_the_same_texts_give_the_same_figures(source):
    one, two = (sensitivity.measure(source, texts(2, 9), SILENT) for _ in range(2))
    assert all(torch.equal(a[k].outputs, b[k].outputs) for a, b in zip(one, two, strict=True) for k in a)


def test_texts_beyond_the_memory_for_states_are_left_out(source, monkeypatch):
    spec = source.spec
    monkeypatch.setattr(fisher, "STATE_BYTES", 4 * spec.hidden * len(spec.layers) * 21)
    few = sensitivity.measure(source, texts(5, 10), SILENT)
    two = sensitivity.measure(source, texts(5, 10)[:2], SILENT)
    assert torch.equal(few[0]["qkv"].outputs, two[0]["qkv"].outputs)


def test_labels_further_apart_weigh_as_much(folder, source, monkeypatch):
    """With a label at every third token the figures are noisier, not smaller."""
    batches = texts(40, 60)
    every = sensitivity.measure(source, batches, SILENT)
    monkeypatch.setattr(fisher, "_labels_apart", lambda spec: 3)
    third = sensitivity.measure(source, batches, SILENT)
    for one, two in zip(every, third, strict=True):
        for kind in LINEAR_KINDS:
            assert two[kind].total == pytest.approx(one[kind].total, rel=0.35)


def test_a_head_larger_than_all_blocks_gets_fewer_labels():
    spec = ModelSpec.from_config(
        {
            "model_type": "llama", "vocab_size": 100_000, "hidden_size": 64, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
        }
    )  # fmt: skip
    linears = 2 * (3 * 64 + 64 + 2 * 64 + 64) * 64
    assert fisher._labels_apart(spec) == round(100_000 * 64 / linears)


def test_products_in_bfloat16_give_nearly_the_same_figures(source, monkeypatch):
    batches = texts(20, 60)
    exact = sensitivity.measure(source, batches, SILENT)
    monkeypatch.setattr(fisher, "compute_type", lambda: torch.bfloat16)
    rounded = sensitivity.measure(source, batches, SILENT)
    for one, two in zip(exact, rounded, strict=True):
        for kind in LINEAR_KINDS:
            assert two[kind].total == pytest.approx(one[kind].total, rel=0.15)
            assert not torch.equal(one[kind].outputs, two[kind].outputs)


def test_it_stops_when_asked(source):
    with pytest.raises(Interrupted):
        sensitivity.measure(source, texts(1, 5), JobContext("prepare", lambda event: None, lambda: True))


def test_stored_figures_come_back_for_the_same_weights_only(source, tmp_path):
    found = sensitivity.measure(source, texts(1, 9), SILENT)
    assert sensitivity.read_sensitivities(tmp_path, len(found), "a") is None
    sensitivity.write_sensitivities(tmp_path, found, "a")
    again = sensitivity.read_sensitivities(tmp_path, len(found), "a")
    for a, b in zip(found, again, strict=True):
        assert all(torch.equal(a[k].inputs, b[k].inputs) and a[k].total == b[k].total for k in LINEAR_KINDS)
    assert sensitivity.read_sensitivities(tmp_path, len(found), "b") is None
    file = next(tmp_path.rglob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-40])
    assert sensitivity.read_sensitivities(tmp_path, len(found), "a") is None


@pytest.mark.parametrize("bad", [torch.tensor([-1.0]), torch.tensor([torch.nan]), torch.ones(2, 2)])
def test_impossible_figures_are_refused(bad):
    with pytest.raises(ValueError, match="sensitivity"):
        Sensitivity(bad, torch.ones(3))
