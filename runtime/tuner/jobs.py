"""The worker's entry for `tune`."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from runtime import device
from runtime.engine.bench_linears import StepMeasurer
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.progress import JobContext
from runtime.protocol.commands import Tune
from runtime.store.locks import exclusive
from runtime.tuner import search
from runtime.tuner.profile import Machine, Profile, write_profile
from runtime.tuner.quiet import wait_for_quiet


class Measurer(Protocol):
    """Times of one linear of each kind on the device, in microseconds."""

    def base_us(self, kind: LinearKind) -> float:
        """The base product alone."""
        ...

    def corrected_us(self, kind: LinearKind, k_chunk: int) -> float:
        """The product with k_chunk channels per 1024 corrected."""
        ...

    def limit(self, kind: LinearKind) -> int:
        """The largest k_chunk the device can do."""
        ...


def tune(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Measure, search, store. `args`: the fields of a Tune command; result as in `tune --json`.

    One at a time, for two would measure each other; and refused at once where the result cannot be written.
    """
    command = msgspec.convert(args, Tune)
    device.require_wanted()
    with exclusive("tune", "Tuning"):
        measurer = StepMeasurer(command.model, command.base, ctx)
        wait_for_quiet(ctx)
        profile = measured_profile(command, measurer, ctx)
        write_profile(profile)
    return summary(profile)


def measured_profile(command: Tune, measurer: Measurer, ctx: JobContext) -> Profile:
    """The profile of a model from its measured linears; progress "tune" in points."""
    base = {kind: measurer.base_us(kind) for kind in LINEAR_KINDS}
    limits = {kind: measurer.limit(kind) for kind in LINEAR_KINDS}
    costs = search.measure(
        base,
        measurer.corrected_us,
        limits,
        progress=lambda done, total: ctx.progress("tune", done, total, "points"),
    )
    return Profile(
        model=command.model,
        base=command.base,
        machine=Machine.here(),
        base_us={str(kind): us for kind, us in base.items()},
        path=search.path(costs),
    )


def summary(profile: Profile) -> dict[str, Any]:
    """A profile as `tune --json` shows it; n_tb is a GPU's and empty here."""
    detents = {f"{pct:g}": search.at(profile.path, pct) for pct in search.DETENTS}
    return {
        "model": profile.model,
        "device": profile.machine.device,
        "base_us": profile.base_us,
        "n_tb": {},
        "path": msgspec.to_builtins(profile.path),
        "detents": msgspec.to_builtins(detents),
    }
