"""The catalogue's default model, dense, against transformers on the same weights."""

import json

import pytest
import torch
from safetensors.torch import save_file

from runtime.checkpoint import open_checkpoint
from runtime.model.build import build_dense
from runtime.model.cache import KVCache
from runtime.progress import JobContext
from runtime.sources import catalogue, resolve

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):",
    "Once upon a time there was a lighthouse keeper who",
    "Water boils at 100 degrees because",
    "Liste der deutschen Bundesländer:",
]
TOKENS = 64


def greedy(decoder, ids):
    cache, out = KVCache(decoder.spec, len(ids) + TOKENS), []
    logits = decoder.forward(torch.tensor(ids), cache)[-1]
    for _ in range(TOKENS):
        out.append(int(logits.argmax()))
        logits = decoder.forward(torch.tensor(out[-1:]), cache)[-1]
    return out


@pytest.mark.network
@pytest.mark.slow
def test_same_greedy_tokens_as_transformers(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    checkpoint = open_checkpoint(resolve(catalogue.default().name).fetch(JobContext.silent()))
    save_file(
        {name: checkpoint.load(name).float().contiguous() for name in checkpoint.names()},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    (tmp_path / "config.json").write_text(json.dumps(checkpoint.config))
    checkpoint.write_tokenizer(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    tokenizer, decoder = AutoTokenizer.from_pretrained(tmp_path), build_dense(checkpoint)
    with torch.inference_mode():
        for prompt in PROMPTS:
            ids = tokenizer(prompt).input_ids
            settings = {"do_sample": False, "max_new_tokens": TOKENS, "min_new_tokens": TOKENS}
            expected = model.generate(torch.tensor([ids]), pad_token_id=0, eos_token_id=None, **settings)
            assert greedy(decoder, ids) == expected[0, len(ids) :].tolist(), prompt
