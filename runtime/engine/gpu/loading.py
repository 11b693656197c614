"""From a prepared model in the store to an engine on a GPU."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch

from runtime import device, devices
from runtime.engine.gpu.contents import stored_contents
from runtime.engine.gpu.engine import GpuEngine
from runtime.engine.gpu.linears import Fetching
from runtime.engine.gpu.loading_model import LoadedModel, ModelLoader
from runtime.engine.gpu.memory_plan import MemoryPlan
from runtime.engine.gpu.plan import Wishes, make_plan
from runtime.engine.opened import LoadedEngine, OpenedModel, find_profile, open_model
from runtime.engine.slider import TunedPath
from runtime.errors import MachineLimit
from runtime.progress import JobContext
from runtime.protocol.commands import Load
from runtime.protocol.events import Loaded, SlowdownPoint
from runtime.shortage import is_out_of_memory, release_memory, shortage
from runtime.store.units import in_words
from runtime.tuner.fetching import fetch_configs
from runtime.tuner.profile import Machine

NO_RESIDUALS = "no residual fits into host memory that the GPU can read"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is loaded: a device, as shown to people, as profiles know it, and its free bytes."""

    device: torch.device
    label: str
    machine: Machine
    free: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """The slider's path and how rows are fetched by kind; no path: `reason` says why."""

    path: tuple[SlowdownPoint, ...] = ()
    fetching: Fetching = field(default_factory=dict)
    reason: str = ""


def load_gpu_engine(
    command: Load, ctx: JobContext, index: int, keep_lossless: bool = True
) -> LoadedEngine[GpuEngine]:
    """Read a prepared model onto a CUDA device. Raises DecdecError, Interrupted; progress "load" in blocks.

    `keep_lossless`: hold the INT8-X linears beside a low-bit base where memory allows.
    """
    where = torch.device("cuda", index)
    torch.cuda.set_device(where)
    release_memory()
    free = torch.cuda.mem_get_info(where)[0]
    place = Place(where, devices.label(index), Machine.with_gpu(index), free)
    return load_at(command, ctx, place, keep_lossless)


def load_at(
    command: Load, ctx: JobContext, place: Place, keep_lossless: bool = True
) -> LoadedEngine[GpuEngine]:
    """As `load_gpu_engine`, at a place."""
    started = time.monotonic()
    opened = open_model(command)
    plan = _plan(opened, command, place, keep_lossless)
    tuning = find_tuning(opened.record.name, command.base, place.machine)
    model, engine = _within_memory(opened, command, ctx, place, plan, tuning)
    if tuning.path and not _corrects(model):
        tuning = Tuning(reason=NO_RESIDUALS)
    loaded = Loaded(
        model=opened.record.name,
        base=command.base,
        device=place.label,
        context_limit=plan.setting.context,
        bytes_in_memory=model.bytes_on_device,
        path=tuning.path,
        untuned_reason=tuning.reason,
        lossless=model.lossless is not None,
        load_s=time.monotonic() - started,
        note=model.note,
    )
    return LoadedEngine(engine, loaded, opened.record.path)


def find_tuning(model: str, base: str, machine: Machine) -> Tuning:
    """The tuning that holds on a machine, as far as kernels can follow it."""
    profile, reason = find_profile(model, base, machine)
    if profile is None:
        return Tuning(reason=reason)
    try:
        return Tuning(profile.path, fetch_configs(profile.launches))
    except ValueError as error:
        return Tuning(reason=f"the tuning profile is damaged, {error}")


def _plan(opened: OpenedModel, command: Load, place: Place, keep_lossless: bool) -> MemoryPlan:
    wishes = Wishes(
        context=command.context,
        kv_bits=command.kv_bits,
        lossless=keep_lossless,
        corrected_prompt=command.prompt_correction,
    )
    return make_plan(stored_contents(opened.reader, opened.spec, command.base), place.free, wishes)


def _within_memory(
    opened: OpenedModel, command: Load, ctx: JobContext, place: Place, plan: MemoryPlan, tuning: Tuning
) -> tuple[LoadedModel, GpuEngine]:
    """Model and engine; where memory runs out after all, everything is given back before that is said."""
    try:
        model = ModelLoader(opened, command.base, plan.setting, place.device, ctx).load()
        engine = _engine(model, command, plan, tuning)
        ctx.progress("compile", 0, 1, "steps", "what the slider can ask for")
        engine.warm()
        ctx.progress("compile", 1, 1, "steps")
        return model, engine
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        why = shortage(error)
    # The exception is gone here, and with it the frames that held tensors.
    release_memory()
    raise MachineLimit(
        "Memory ran out while the model was loaded",
        f"{in_words(plan.needed)} should have been enough and {in_words(place.free)} were free, but {why}",
        f"close what else uses the GPU, ask for a shorter context, or set {device.VARIABLE}={device.CPU}",
    )


def _engine(loaded: LoadedModel, command: Load, plan: MemoryPlan, tuning: Tuning) -> GpuEngine:
    return GpuEngine(
        loaded.model,
        path=TunedPath(tuning.path if _corrects(loaded) else []),
        fetching=tuning.fetching,
        lossless=loaded.lossless,
        kv_bits=command.kv_bits,
        prompt_correction=command.prompt_correction,
        chunk=plan.setting.chunk,
    )


def _corrects(loaded: LoadedModel) -> bool:
    """Whether the residual of any block is where the GPU reads it."""
    linears = (linear for block in loaded.model.blocks for linear in block.linears.values())
    return any(linear.residual is not None for linear in linears)
