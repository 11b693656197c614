"""A model of a real shape with random weights, made on the device, as something that answers."""

from __future__ import annotations

from pathlib import Path

import torch

from runtime.bench.decode.random_model import Mode, random_device_model
from runtime.bench.decode.stepping import Tables, new_engine
from runtime.bench.long_run.vocabulary import write_tokenizer
from runtime.bench.shapes import ModelShape
from runtime.engine.opened import LoadedEngine
from runtime.engine.slider import TunedPath
from runtime.generation.engine import Engine
from runtime.protocol.events import KChunk, Loaded, SlowdownPoint

# Every change from one to the next is one that a tuned path has: kinds that begin and that grow.
PATH = (
    SlowdownPoint(0.0, KChunk()),
    SlowdownPoint(2.0, KChunk(qkv=8)),
    SlowdownPoint(5.0, KChunk(qkv=8, o=8)),
    SlowdownPoint(10.0, KChunk(qkv=16, o=16, down=8)),
    SlowdownPoint(20.0, KChunk(qkv=32, o=32, gate_up=8, down=16)),
)


def random_engine(
    shape: ModelShape, base: str, context: int, device: torch.device, folder: Path
) -> LoadedEngine[Engine]:
    """An engine of random weights whose path corrects; `folder` gets a tokenizer of its vocabulary."""
    write_tokenizer(shape.vocabulary, folder)
    mode = Mode(base)
    path = PATH if mode.corrected else ()
    model = random_device_model(shape, mode, context, device)
    engine = new_engine(model, Tables(TunedPath(path), fetching={}) if path else None)
    loaded = Loaded(
        model=f"{shape.name}, random weights",
        base=base,
        device=torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
        context_limit=context,
        bytes_in_memory=model.bytes_on_device(),
        path=path,
    )
    return LoadedEngine(engine, loaded, folder)
