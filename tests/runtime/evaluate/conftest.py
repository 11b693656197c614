"""A tiny model on disk, a text of its words, and the sums of transformers to compare with."""

import math

import pytest
import torch
from torch.nn import functional as F

from runtime.evaluate.jobs import ppl
from runtime.progress import JobContext
from tests.runtime.evaluate.word_model import WORDS, save_word_model, write_words
from tests.runtime.model.tiny import tiny_model

CONTEXT = 24


@pytest.fixture(scope="session")
def model():
    return tiny_model("llama")[0]


@pytest.fixture(scope="session")
def folder(tmp_path_factory, model):
    return save_word_model(model, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def tokens():
    return torch.randint(0, WORDS, (2, CONTEXT), generator=torch.Generator().manual_seed(4))


@pytest.fixture(scope="session")
def text(tmp_path_factory, tokens):
    return write_words([*tokens.flatten().tolist(), 5, 6], tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="session")
def evaluate():
    def run(folder, place, /, **args):
        given = {"model": str(folder), "text": str(place), "context": CONTEXT} | args
        return ppl(given, JobContext.silent())

    return run


def _logits(model, tokens, change=None):
    """transformers' logits with every decoder linear's weight or input changed."""
    hooks = []
    linears = [m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and "layers" in n]
    if change is not None:
        hooks = [
            m.register_forward_hook(lambda m, args, out: change(m.weight, args[0][0])[None]) for m in linears
        ]
    with torch.inference_mode():
        found = [model(row[None]).logits[0] for row in tokens]
    for handle in hooks:
        handle.remove()
    return found


@pytest.fixture(scope="session")
def expected():
    def sums(model, tokens, change, prompt=0):
        """Mean score of the predictions behind the prompt's positions."""
        ours, theirs = _logits(model, tokens, change), _logits(model, tokens)
        score = {"nll": 0.0, "ref": 0.0, "kl": 0.0, "top1": 0.0}
        for a, b, row in zip(ours, theirs, tokens, strict=True):
            a, b, row = a[prompt:-1], b[prompt:-1], row[prompt + 1 :]
            score["nll"] += F.cross_entropy(a, row).item() / len(tokens)
            score["ref"] += F.cross_entropy(b, row).item() / len(tokens)
            kl = F.kl_div(a.log_softmax(-1), b.softmax(-1), reduction="batchmean")
            score["kl"] += kl.item() / len(tokens)
            score["top1"] += (a.argmax(-1) == b.argmax(-1)).float().mean().item() / len(tokens)
        return score

    return sums


@pytest.fixture(scope="session")
def check():
    def compare(row, wanted):
        assert row["ppl"] == pytest.approx(math.exp(wanted["nll"]), rel=2e-3)
        assert row["nll_delta"] == pytest.approx(wanted["nll"] - wanted["ref"], abs=2e-3)
        assert row["kl"] == pytest.approx(wanted["kl"], rel=0.01, abs=1e-4)
        assert row["top1"] == pytest.approx(wanted["top1"], abs=0.05)

    return compare
