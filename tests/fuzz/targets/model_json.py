"""The small files of a model's folder: configuration, index, tokenizer, generation settings, token names."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save

from runtime.checkpoint import open_checkpoint
from runtime.generation.answer import AnswerText
from runtime.generation.sampler import Sampler
from runtime.generation.settings import model_defaults, resolve
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_places
from runtime.prepare.sizes import staging_bytes
from runtime.prepare.text import write_text
from runtime.progress import JobContext
from runtime.protocol.commands import Message, Sampling
from runtime.sources.local import FolderSource
from runtime.store import atomic
from runtime.text.endings import end_ids
from runtime.text.prompt import PromptBuilder
from runtime.text.tokenizer import Tokenizer
from tests.fuzz import bundle
from tests.fuzz.mutations import VERY_DEEP, dumped
from tests.fuzz.refusal import refusals
from tests.fuzz.small_tokenizers import byte_level, hostile, sentencepiece

NAME = "model_json"
MUTATIONS = 40
INDEX = "model.safetensors.index.json"
NAMES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json",
    "config.json", "chat_template.json", INDEX, "model-1.safetensors", "model.safetensors",
)  # fmt: skip
QUESTION = (
    "hello <|im_end|> world\n\n  東京 naïve 😀 </s><0x41>"
    + "a" * 300
    + "!"
    + " " * 300
    + "\r\n" * 50
    + "1" * 300
)
CHAT = [Message("system", "Be brief."), Message("user", QUESTION)]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{{ eos_token }}{% endfor %}"
)


def seeds(folder: Path) -> list[bytes]:
    """Folders of each family and tokenizer, whole and sharded."""
    return [
        _folder("llama", byte_level(), {"rope_scaling": _llama3()}),
        _folder(
            "qwen2",
            byte_level(),
            {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["full_attention"]},
        ),
        _folder(
            "gemma3_text",
            sentencepiece(),
            {"query_pre_attn_scalar": 16, "sliding_window": 4, "sliding_window_pattern": 2},
        ),
        _folder(
            "gemma3",
            sentencepiece(),
            {"text_config": {**_config("gemma3_text"), "sliding_window": 4, "query_pre_attn_scalar": 16}},
        ),
        _folder(
            "phi3", sentencepiece(), {"original_max_position_embeddings": 16, "rope_scaling": _longrope()}
        ),
        _folder("mistral", byte_level(), {}, sharded=True),
        _folder("llama", byte_level(), {"half": "\ud800"}),
        _folder("llama", byte_level(), {"deep": VERY_DEEP}),
        *(_folder("llama", _deep(part), {}) for part in ("x", "decoder", "normalizer", "added_tokens")),
        *(_folder("llama", tokenizer, {}) for tokenizer in hostile()),
    ]


def check(data: bytes, folder: Path) -> None:
    """Open the folder as import does, then its text side as a chat does."""
    source, made = folder / "given", folder / "made"
    bundle.write(NAMES, data, source)
    source.mkdir(exist_ok=True)
    with refusals():
        checkpoint = open_checkpoint(FolderSource(source).fetch(JobContext.silent()))
        with refusals():
            spec = ModelSpec.from_config(checkpoint.config)
            staging_bytes(checkpoint, spec, [])
            linear_places(spec, checkpoint.shape)
            for rope in spec.ropes:
                rope.tables(16)
        write_text(checkpoint, made)
        atomic.write_json(made / "config.json", checkpoint.config)
        _chat(made)


def _chat(folder: Path) -> None:
    """What a session does with the text side: a prompt, and an answer of every token."""
    tokenizer = Tokenizer.from_folder(folder)
    builder = PromptBuilder.from_folder(folder, tokenizer)
    end_ids(folder, tokenizer)
    with refusals():
        prompt = builder.build(CHAT)
        answer = AnswerText(tokenizer, builder.stops, prompt.opening)
        for token in [*prompt.ids, *range(min(tokenizer.vocab_size, 400)), 2**31]:
            answer.push(token)
        answer.finish()
        builder.remember(prompt, answer.own_text, answer.ids)
        builder.build([*CHAT, Message("assistant", answer.text), Message("user", "more")])
    _sample(folder)


def _sample(folder: Path) -> None:
    sampler = Sampler(resolve(Sampling(), model_defaults(folder)), [1, 2, 3])
    logits = torch.linspace(-1, 1, 64)
    for _ in range(3):
        assert 0 <= sampler.pick(logits) < 64


def mutate(data: bytes, random: Random) -> bytes:
    """One file in the way of its kind."""
    return bundle.mutate(NAMES, data, random)


def _folder(family: str, tokenizer: str, extra: dict, sharded: bool = False) -> bytes:
    tensors = {"model.embed_tokens.weight": torch.ones(4, 8), "model.norm.weight": torch.ones(8)}
    weights = {"model.safetensors": save(tensors)}
    if sharded:
        index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model-1.safetensors")}
        weights = {INDEX: json.dumps(index).encode(), "model-1.safetensors": save(tensors)}
    documents = {
        "tokenizer_config.json": {
            "bos_token": "<s>", "eos_token": {"content": "<|im_end|>"}, "unk_token": "<unk>",
            "chat_template": TEMPLATE, "model_max_length": 64, "auto_map": {"AutoTokenizer": ["x.Y", None]},
        },
        "special_tokens_map.json": {"pad_token": "</s>", "additional_special_tokens": ["<|im_start|>"]},
        "generation_config.json": {
            "eos_token_id": [0, 2], "do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.9,
            "repetition_penalty": 1.1, "min_p": 0.05,
        },
        "config.json": {**_config(family), **extra},
    }  # fmt: skip
    texts = {name: dumped(value) for name, value in documents.items()}
    return bundle.pack(NAMES, {"tokenizer.json": tokenizer.encode(), **texts, **weights})


def _deep(part: str) -> str:
    return dumped({**json.loads(byte_level()), part: VERY_DEEP}).decode()


def _config(family: str) -> dict:
    return {
        "model_type": family, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 400,
        "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
    }  # fmt: skip


def _llama3() -> dict:
    factors = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return {"rope_type": "llama3", **factors, "original_max_position_embeddings": 16}


def _longrope() -> dict:
    return {"type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0]}
