"""Batches of texts against one text at a time, and what is kept of them."""

from dataclasses import replace
from itertools import count

import pytest
import torch
from safetensors.torch import load_file, save_file

from runtime.calibration import continuations as module
from runtime.calibration.batch import BatchCache, BatchDecoder
from runtime.calibration.continuations import FILE, READ, WRITTEN, continuations, too_large, write_on
from runtime.calibration.prompts import TOKENS, joined, token_batches
from runtime.errors import DecdecError, Interrupted
from runtime.model.build import build_dense
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from tests.runtime.model.tiny import FAMILIES, tiny_model

SILENT = JobContext.silent()


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    monkeypatch.setattr(module, "compute_type", lambda: torch.float32)


@pytest.fixture
def model():
    return SourceModel(tiny_model("llama", max_position_embeddings=256)[1])


def prompts(lengths=(40, 31, 50, 32, 90)):
    g = torch.Generator().manual_seed(2)
    return [torch.randint(3, 97, (n,), generator=g) for n in lengths]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_reads_every_text_as_if_it_were_alone(family):
    _, checkpoint = tiny_model(family)
    texts = torch.randint(3, 97, (4, 20), generator=torch.Generator().manual_seed(1))
    batch, cache = BatchDecoder(SourceModel(checkpoint), torch.float32), cache_of(checkpoint, 4, 20)
    alone = torch.stack([build_dense(checkpoint).forward(text) for text in texts])
    with torch.inference_mode():
        for start, stop in ((0, 9), (9, 10), (10, 11), (11, 20)):
            logits = batch.next_logits(texts[:, start:stop], cache)
            torch.testing.assert_close(logits, alone[:, stop - 1], rtol=1e-4, atol=1e-4)


def cache_of(checkpoint, batch, length):
    return BatchCache(SourceModel(checkpoint).spec, batch, length)


def test_tokens_are_drawn_from_the_models_own_predictions(model):
    start = prompts()[0][None, :READ]
    written = write_on(model, start, 12, SILENT)[0]
    decoder, generator = build_dense(model.checkpoint), torch.Generator().manual_seed(module.SEED)
    expected = start[0]
    for _ in range(12):
        chances = decoder.forward(expected)[-1].softmax(-1)
        expected = torch.cat([expected, torch.multinomial(chances, 1, generator=generator)])
    assert written.tolist() == expected.tolist()


def test_long_enough_prompts_are_continued(model, tmp_path):
    texts = continuations(model, prompts(), tmp_path, "a", SILENT)
    assert [text.shape for text in texts] == [(READ + WRITTEN,)] * 4
    assert all(torch.equal(text[:READ], p[:READ]) for text, p in zip(texts, _long(), strict=True))
    assert all(text.dtype == torch.int64 for text in texts)
    assert len({tuple(text[READ:].tolist()) for text in texts}) == 4


def _long():
    return [prompt for prompt in prompts() if len(prompt) >= READ]


def test_of_many_prompts_a_fair_share_is_continued(model, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WRITTEN", 2)
    many = [torch.full((READ,), 3 + i % 90) for i in range(100)]
    texts = continuations(model, many, tmp_path, "a", SILENT)
    assert len(texts) == module.TEXTS
    assert torch.equal(texts[0][:READ], many[0])
    assert torch.equal(texts[-1][:READ], many[-1])


def test_no_prompt_is_long_enough(model, tmp_path):
    assert continuations(model, prompts((5, 31)), tmp_path, "a", SILENT) == []


@pytest.fixture
def kept(model, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WRITTEN", 3)
    return continuations(model, prompts(), tmp_path, "a", SILENT)


def refuse(*args):
    raise AssertionError("it was sampled again")


def test_what_is_kept_is_not_sampled_again(model, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "write_on", refuse)
    again = continuations(model, prompts(), tmp_path, "a", SILENT)
    assert all(torch.equal(a, b) for a, b in zip(again, kept, strict=True))


def test_other_weights_are_asked_again(model, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "write_on", refuse)
    with pytest.raises(AssertionError):
        continuations(model, prompts(), tmp_path, "b", SILENT)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.long(),
        lambda t: t[:, :-1].clone(),
        lambda t: t[0].clone(),
        lambda t: t - 100,
        lambda t: t + 97,
        lambda t: None,
    ],
)
def test_a_damaged_file_is_written_again(model, kept, tmp_path, change):
    changed = change(load_file(tmp_path / FILE)["texts"])
    save_file({} if changed is None else {"texts": changed}, tmp_path / FILE, {"source": "a"})
    again = continuations(model, prompts(), tmp_path, "a", SILENT)
    assert all(torch.equal(a, b) for a, b in zip(again, kept, strict=True))


def test_a_file_of_something_else_is_written_again(model, kept, tmp_path):
    (tmp_path / FILE).write_bytes(b"no safetensors")
    again = continuations(model, prompts(), tmp_path, "a", SILENT)
    assert all(torch.equal(a, b) for a, b in zip(again, kept, strict=True))


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / FILE.parent).write_text("no folder")
    with pytest.raises(DecdecError, match=r"Writing continuations\.safetensors failed"):
        module.write_continuations(tmp_path, torch.zeros(1, READ + WRITTEN), "a")


def test_texts_are_prompts_and_continuations_joined(model, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "encoder", lambda checkpoint: lambda text: [3 + ord(c) % 90 for c in text])
    monkeypatch.setattr(module, "WRITTEN", 3)
    read = joined(token_batches(module.encoder(None), TOKENS))
    both = torch.cat(module.model_texts(model, tmp_path, "a", SILENT))
    assert torch.equal(both[:TOKENS], torch.cat(read))
    assert len(both) == TOKENS + module.TEXTS * (READ + 3)
    monkeypatch.setattr(module, "MOST_WEIGHTS", 1)
    alone = module.model_texts(model, tmp_path, "a", SILENT)
    assert all(torch.equal(a, b) for a, b in zip(alone, read, strict=True))


def test_stopping_keeps_nothing(model, tmp_path):
    # Asked for a third time, however fast the machine is: progress is told by the clock.
    asked = count(1)
    ctx = JobContext("prepare", lambda event: None, lambda: next(asked) > 2)
    with pytest.raises(Interrupted):
        continuations(model, prompts(), tmp_path, "a", ctx)
    assert not (tmp_path / FILE).exists()


def test_large_models_are_left_out_with_a_reason(model):
    assert too_large(model.spec) is None
    large = replace(model.spec, vocab_size=1 << 20, hidden=1 << 10)
    assert "million weights" in (too_large(large) or "")
