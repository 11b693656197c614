"""The worker's entry for `tune`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from runtime import devices, locations
from runtime.engine.bench_linears import StepMeasurer
from runtime.pictures import require_suffix
from runtime.progress import JobContext
from runtime.protocol.commands import Tune
from runtime.store.locks import exclusive
from runtime.store.space import require_space
from runtime.tuner import live, plot, search, tuning
from runtime.tuner.live import Live, WholeToken
from runtime.tuner.measurer import Measurer
from runtime.tuner.profile import MAX_BYTES, Machine, Profile, write_profile
from runtime.tuner.quiet import wait_for_quiet
from runtime.tuner.tuning import Tuned


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured, the machine that the profile is valid on, and its link's GB/s where it has one.

    token: what a whole token takes, asked when all is measured; None where nobody knows.
    """

    measurer: Measurer
    machine: Machine
    link_gb_s: float | None = None
    token: Callable[[], WholeToken | None] = lambda: None


def tune(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Measure, search, verify, store; result: `summary`.

    `args`: the fields of a Tune command, and `plot`: a file ending in .svg or .png to draw into.
    One at a time, for two would measure each other; and refused at once where the result cannot be written.
    """
    command = msgspec.convert({key: value for key, value in args.items() if key != "plot"}, Tune)
    picture = Path(args["plot"]) if args.get("plot") else None
    if picture:
        require_suffix(picture)
    index = devices.answering_gpu()
    with exclusive("tune", "Tuning"):
        require_space(locations.profiles(), MAX_BYTES)
        target = cpu_target(command, ctx) if index is None else gpu_target(command, index, ctx)
        wait_for_quiet(ctx)
        tuned = run(target, ctx)
        profile = make_profile(command, target, tuned)
        write_profile(profile)
    if picture:
        plot.draw(picture, f"{command.model}, {command.base}, {profile.machine.processor}", tuned)
    result = summary(profile)
    result["report"] |= live.findings(tuned, target.token())
    return result


def cpu_target(command: Tune, ctx: JobContext) -> Target:
    """The engine's own decode steps; slowdowns are percents of their linears."""
    measurer = StepMeasurer(command.model, command.base, ctx)

    def token() -> WholeToken:
        linears_us = sum(tuning.base_times(measurer).linears.values())
        return live.whole_token(command.model, measurer.block_us, linears_us)

    return Target(measurer, Machine.here(), token=token)


def gpu_target(command: Tune, index: int, ctx: JobContext) -> Target:
    """Captured graphs of random weights with the model's shapes: times do not depend on the weights."""
    from runtime.tuner.gpu_model import model_measurer

    measurer = model_measurer(command.model, command.base, index, ctx)
    token = partial(live.whole_token, command.model, measurer.total_us, measurer.total_us)
    return Target(measurer, Machine.with_gpu(index), measurer.link_gb_s, token)


def run(target: Target, ctx: JobContext) -> Tuned:
    """Tuning, with progress "tune" in points, then "check" in detents."""
    heard = Live(ctx, tuning.base_times(target.measurer))
    return tuning.run(target.measurer, progress=heard.counted, checking=heard.checked, listener=heard.point)


def make_profile(command: Tune, target: Target, tuned: Tuned) -> Profile:
    """What is kept of it."""
    return Profile(
        model=command.model,
        base=command.base,
        machine=target.machine,
        base_us={str(kind): us for kind, us in tuned.costs.base.linears.items()},
        path=tuned.path,
        launches={str(kind): launch for kind, launch in tuned.launches.items() if launch.programs},
        detents=tuned.detents,
        link_gb_s=target.link_gb_s,
    )


def summary(profile: Profile) -> dict[str, Any]:
    """A profile as `tune --json` shows it, and under "report" what its table shows besides.

    n_tb is a GPU's and empty elsewhere.
    """
    detents = {f"{pct:g}": search.at(profile.path, pct) for pct in search.DETENTS}
    return {
        "model": profile.model,
        "device": profile.machine.device,
        "base_us": profile.base_us,
        "n_tb": profile.n_tb,
        "path": msgspec.to_builtins(profile.path),
        "detents": msgspec.to_builtins(detents),
        "report": {
            "processor": profile.machine.processor,
            "link_gb_s": profile.link_gb_s,
            "detents": msgspec.to_builtins(profile.detents),
        },
    }
