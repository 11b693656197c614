"""Numbers and progress for people."""

from __future__ import annotations

from runtime.protocol.events import KChunk, Progress

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP_TITLES = {
    "download": "Download",
    "continuations": "Calibration texts",
    "encode": "Encode INT8-X",
    "allocate": "Choose bits",
    "wait": "Wait for idle",
    "mt_bench": "MT-Bench",
    "bbh": "BIG-Bench Hard",
}


def size(count: float) -> str:
    """Bytes in decimal units, three figures: 92.9 MB."""
    index = 0
    while count >= 999.5 and index < len(_UNITS) - 1:
        count, index = count / 1000, index + 1
    digits = 0 if index == 0 or count >= 99.95 else 1 if count >= 9.995 else 2
    return f"{count:.{digits}f} {_UNITS[index]}"


def number(count: int) -> str:
    """Thousands apart by a thin gap that every terminal has: 12 345."""
    return f"{count:,}".replace(",", " ")


def compact(count: float) -> str:
    """A count with three or four figures: 9 512, 134.5 M."""
    for limit, unit in ((1e9, "G"), (1e6, "M")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return number(round(count)) if count >= 10 else f"{count:.1f}".removesuffix(".0")


def percent(value: float) -> str:
    """At most one decimal, none when it is zero: 2.5 %, 10 %."""
    return f"{value:.1f}".removesuffix(".0") + " %"


def duration(seconds: float) -> str:
    """Two largest units: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def speed(tokens_per_s: float) -> str:
    """Tokens per second with three figures."""
    return f"{tokens_per_s:.{0 if tokens_per_s >= 99.95 else 1}f} tok/s"


def about(tokens_per_s: float) -> str:
    """A speed that was not measured: no digit that would say more than is known. Without its unit."""
    return f"{tokens_per_s:.{0 if tokens_per_s >= 9.95 else 1}f}"


def milliseconds(ms: float) -> str:
    """Three figures, without the unit: 128, 12.8, 1.28."""
    return f"{ms:.{0 if ms >= 99.95 else 1 if ms >= 9.995 else 2}f}"


def step_title(step: str) -> str:
    """The name people see for a step of a job."""
    return _STEP_TITLES.get(step, step.replace("_", " ").capitalize())


def amount(progress: Progress) -> str:
    """`41.2 MB of 92.9 MB`, or `12 of 60 tensors`, or what is done when the total is unknown."""
    if progress.unit == "bytes":
        done, total = size(progress.done), size(progress.total)
    else:
        done, total = compact(progress.done), f"{compact(progress.total)} {progress.unit}"
    if progress.total:
        return f"{done} of {total}"
    return done if progress.unit == "bytes" else f"{done} {progress.unit}"


def pace(progress: Progress) -> str:
    """`5.1 MB/s, 10 s left`; empty while unknown."""
    parts = []
    if progress.rate:
        per_s = (
            size(progress.rate) if progress.unit == "bytes" else f"{compact(progress.rate)} {progress.unit}"
        )
        parts.append(f"{per_s}/s")
    if progress.eta_s is not None and progress.done < progress.total:
        parts.append(f"{duration(progress.eta_s)} left")
    return ", ".join(parts)


def progress_line(progress: Progress) -> str:
    """One plain line for a log or a pipe."""
    parts = [f"{step_title(progress.step)}: {amount(progress)}"]
    if progress.total:
        parts.append(f"({100 * progress.done // progress.total} %)")
    if tail := pace(progress):
        parts.append(f"at {tail}" if progress.rate else tail)
    if progress.note:
        parts.append(f"- {progress.note}")
    return " ".join(parts)


def k_chunk(table: KChunk) -> str:
    """Corrected channels per 1024, by linear type."""
    return f"qkv {table.qkv} · o {table.o} · gate/up {table.gate_up} · down {table.down}"
