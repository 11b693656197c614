"""Figure 12 and table 3 of the DecDEC paper: time of a linear by channels, and what the tuner chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from runtime import devices, locations
from runtime.bench.table import Row, Table
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS
from runtime.progress import JobContext
from runtime.protocol.commands import Tune
from runtime.tuner.jobs import Target, cpu_target, gpu_target
from runtime.tuner.profile import Profile
from runtime.tuner.tuning import base_times, measured_curves

# Columns of figure 12: time over that of the base alone.
MARKS = (1, 8, 16, 32, 64, 128, 256)


class Times(msgspec.Struct, frozen=True):
    """One linear's times: added microseconds by k_chunk, ascending. n_tb: programs that fetch; rows: in
    flight a warp; both 0 on a CPU.
    """

    kind: str
    n_tb: int
    rows: int
    base_us: float
    k_chunk: tuple[int, ...]
    added_us: tuple[float, ...]


class Measured(msgspec.Struct, frozen=True):
    """Times of a model's linears on a machine."""

    model: str
    base: str
    processor: str
    link_gb_s: float | None
    times: tuple[Times, ...]


def measure(model: str, base: str, ctx: JobContext) -> Measured:
    """Measure every linear with every number of fetch programs worth trying; minutes on an idle machine."""
    command, index = Tune(model, base), devices.answering_gpu()
    target = cpu_target(command, ctx) if index is None else gpu_target(command, index, ctx)
    return Measured(model, base, target.machine.processor, target.link_gb_s, _times(target, ctx))


def _times(target: Target, ctx: JobContext) -> tuple[Times, ...]:
    base = base_times(target.measurer)
    curves = measured_curves(
        target.measurer, base, lambda done, total: ctx.progress("times", done, total, "points")
    )
    return tuple(
        Times(kind, launch.programs, launch.rows, base.linears[kind], tuple(curve), tuple(curve.values()))
        for kind, by_launch in curves.items()
        for launch, curve in by_launch.items()
    )


def times_table(measured: Measured | None) -> Table:
    """Figure 12."""
    key, title = "figure 12", "Time against k_chunk and fetch programs (paper: figure 12)"
    if measured is None:
        return Table(key, title, [], ["Not measured: ask for it by --times, on an idle machine."])
    rows: list[Row] = [
        {
            "linear": each.kind,
            "n_tb": each.n_tb or None,
            "rows": each.rows or None,
            "base, µs": each.base_us,
            **{f"k {mark}": normalised(each, mark) for mark in MARKS},
        }
        for each in measured.times
    ]
    link = f", link to host memory {measured.link_gb_s:.1f} GB/s" if measured.link_gb_s else ""
    return Table(key, title, rows, [
        f"{measured.model}, {measured.base}, on {measured.processor}{link}. Time of base and correction over"
        " that of the base alone. n_tb: programs that fetch; rows: in flight a warp (a CPU has neither)."
        " Between two measured k_chunk the higher counts; beyond what the tuner would pay none is measured."
    ])  # fmt: skip


def normalised(times: Times, k_chunk: int) -> float | None:
    """Time at k_chunk over the base's: of the nearest measured k_chunk not below; None beyond the last."""
    return next(
        (
            1 + added / times.base_us
            for k, added in zip(times.k_chunk, times.added_us, strict=True)
            if k >= k_chunk
        ),
        None,
    )


def tuner_table(profiles: Sequence[Profile]) -> Table:
    """Table 3: what the tuner chose for each target, and what it measured there."""
    rows: list[Row] = [
        {
            "processor": profile.machine.processor,
            "base": profile.base,
            "target %": detent.target_pct,
            "k qkv/o/gate_up/down": "/".join(map(str, msgspec.structs.astuple(detent.k_chunk))),
            "n_tb": "/".join(str(profile.n_tb.get(kind, 0)) for kind in LINEAR_KINDS)
            if profile.n_tb
            else None,
            "predicted %": detent.predicted_pct,
            "measured %": detent.measured_pct,
        }
        for profile in profiles
        for detent in profile.detents
        if detent.target_pct
    ]
    notes = [
        "Slowdown of a token on a GPU, of its linears on a CPU. The paper prints its n_tb limit with the four"
        " k_chunk."
    ]
    if not rows:
        notes = ["No profile is here: tune the model first."]
    return Table("table 3", "What the tuner chooses for four targets (paper: table 3)", rows, notes)


def profiles(model: str) -> list[Profile]:
    """Every readable profile of a model, of any base and machine; others are passed over."""
    found: list[Profile] = []
    for path in sorted(locations.profiles().glob("*.json")):
        try:
            profile: Any = msgspec.json.decode(path.read_bytes(), type=Profile)
        except (msgspec.DecodeError, ValueError, OSError, DecdecError):
            continue
        if profile.model == model:
            found.append(profile)
    return found
