"""Whether the engine on a GPU computes what the model says: `python -m runtime.bench.decode.agreement`.

Of a prepared model with real weights: logits of single steps against a float32 decoder of the same weights on
the CPU, greedy text, and what correcting the prompt is worth. Writes FOLDER/gpu-agreement.json.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from runtime import lowbit, store
from runtime.bench.table import Row
from runtime.engine.load import load_engine
from runtime.generation.settings import GREEDY
from runtime.int8x import Int8xReader
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.dense import Dense
from runtime.layers.int8 import Int8
from runtime.lowbit.weights import LowBitWeights, scaled_base
from runtime.model.build import bare_block
from runtime.model.decoder import Decoder
from runtime.model.quantised import int8_block, int8_tables
from runtime.model.spec import ModelSpec
from runtime.model.weights import FINAL_NORM, norm_weight
from runtime.progress import JobContext
from runtime.protocol.commands import LOSSLESS, Load
from runtime.protocol.events import KChunk
from runtime.store import atomic
from runtime.text import Tokenizer

STEPS, PROMPT = 512, 32
LONG_PROMPT, SCORED, WINDOWS = 448, 64, 6
K_CHUNKS = (0, 8, 32)


def main() -> None:
    """Parse the arguments, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--bases", nargs="+", default=["awq3"])
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--home", type=Path, help="where the model is, if not in DECDEC_HOME")
    arguments = parser.parse_args()
    if arguments.home:
        os.environ["DECDEC_HOME"] = str(arguments.home.resolve())
    text = arguments.text.read_text(encoding="utf-8")
    with torch.inference_mode():
        rows = list(all_rows(arguments.model, arguments.bases, text))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    result = {"date": str(date.today()), "device": device, "rows": rows}
    atomic.write_bytes(arguments.out / "gpu-agreement.json", (json.dumps(result, indent=1) + "\n").encode())


def all_rows(model: str, bases: list[str], text: str) -> Iterator[Row]:
    """Agreement of the lossless layers and of every base, and the prompt's correction; each printed."""
    record = store.find(model)
    ids = list(Tokenizer.from_folder(record.path).encode(text))
    for base in (LOSSLESS, *bases):
        yield _shown(agreement(record, base, ids))
    for base in bases:
        for row in prompt_rows(record, base, ids):
            yield _shown(row)


def agreement(record: store.ModelRecord, base: str, ids: list[int]) -> Row:
    """STEPS greedy steps of the engine, and the reference over the same tokens; nothing is corrected."""
    engine = _engine(record.name, base, False)
    logits = engine.prefill(ids[:PROMPT], lambda: None)
    answer = engine.continuation(logits, GREEDY)
    tokens = [answer.next() for _ in range(STEPS)]
    answer.close()
    engine.truncate(0)
    engine.prefill(ids[:PROMPT], lambda: None)
    found = torch.stack([engine.decode(token).cpu() for token in tokens])
    exact = _reference(record, base).forward(torch.tensor([*ids[:PROMPT], *tokens]))[PROMPT:]
    errors = (found - exact).norm(dim=1) / exact.norm(dim=1)
    same = found.argmax(1) == exact.argmax(1)
    greedy = exact.argmax(1)[:-1] == torch.tensor(tokens[1:])
    return {
        "base": base,
        "steps": STEPS,
        "median error": float(errors.median()),
        "largest error": float(errors.max()),
        "same argmax": float(same.float().mean()),
        "same greedy tokens": float(greedy.float().mean()),
    }


def prompt_rows(record: store.ModelRecord, base: str, ids: list[int]) -> Iterator[Row]:
    """KL to the lossless model over SCORED tokens behind prompts that were corrected, and not."""
    windows = [ids[i * (LONG_PROMPT + SCORED) :][: LONG_PROMPT + SCORED] for i in range(WINDOWS)]
    exact = [_scored(_engine(record.name, LOSSLESS, True), window) for window in windows]
    for corrected in (False, True):
        engine = _engine(record.name, base, corrected)
        for k in K_CHUNKS:
            engine.set_k_chunk(KChunk(k, k, k, k))
            pairs = zip(exact, windows, strict=True)
            kl = [_kl(target, _scored(engine, window)) for target, window in pairs]
            yield {"base": base, "prompt corrected": corrected, "k_chunk": k, "KL": sum(kl) / len(kl)}


def _engine(model: str, base: str, prompt_correction: bool) -> Any:
    command = Load(model, base, 1024, prompt_correction=prompt_correction)
    return load_engine(command, JobContext.silent(), keep_lossless=False).engine


def _scored(engine: Any, window: list[int]) -> Tensor:
    """Log probabilities behind the prompt, float32 [SCORED, vocab]."""
    engine.truncate(0)
    logits = [engine.prefill(window[:LONG_PROMPT], lambda: None)]
    logits += [engine.decode(token) for token in window[LONG_PROMPT:-1]]
    return torch.log_softmax(torch.stack(logits), -1)


def _kl(exact: Tensor, found: Tensor) -> float:
    return float((exact.exp() * (exact - found)).sum(-1).mean())


def _reference(record: store.ModelRecord, base: str) -> Decoder:
    """float32 weights of the base alone, or of the lossless layers, with the stored head and embedding."""
    reader = Int8xReader(record.path)
    spec = ModelSpec.from_config(reader.config)
    blocks = []
    for index in range(len(spec.layers)):
        linears: dict[LinearKind, Linear] = {
            kind: Dense(weight) for kind, weight in _weights(record, reader, spec, base, index).items()
        }
        blocks.append(bare_block(reader, spec, index, linears))
    tables = int8_tables(reader, spec)
    norm = norm_weight(reader, spec, FINAL_NORM, spec.hidden)
    return Decoder(spec, tables.embedding.rows, blocks, norm, Dense(_int8_weight(tables.head)))


def _weights(
    record: store.ModelRecord, reader: Int8xReader, spec: ModelSpec, base: str, index: int
) -> dict[LinearKind, Tensor]:
    if base == LOSSLESS:
        return {kind: _int8_weight(layer) for kind, layer in int8_block(reader, spec, index).items()}
    stored = lowbit.read_block(record.path, base, index)
    return {kind: _base_weight(stored[kind]) for kind in LINEAR_KINDS}


def _int8_weight(layer: Int8) -> Tensor:
    return layer.rows(torch.arange(layer.n_out))


def _base_weight(low: LowBitWeights) -> Tensor:
    scaled = scaled_base(low.base)
    return scaled if low.columns is None else scaled / low.columns


def _shown(row: Row) -> Row:
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
