"""Tuning profiles: JSON that decides what every token is corrected with."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import msgspec

from app.slider import Position, SliderState
from runtime.errors import DecdecError
from runtime.protocol.events import KChunk, Loaded, SlowdownPoint
from runtime.tuner.files import profile_files, profile_path
from runtime.tuner.measurer import NO_PROGRAMS
from runtime.tuner.profile import Machine, Profile, read_profile
from tests.fuzz.mutations import mutate_json_bytes

NAME = "profile"
MACHINE = Machine("cpu", "A processor", 2, "2.11", "0.61", "0.1")
KINDS = ("qkv", "o", "gate_up", "down")


def seeds(folder: Path) -> list[bytes]:
    """A profile of a CPU, one of a GPU, and texts that are none."""
    path = tuple(SlowdownPoint(pct, KChunk(k, k, 2 * k, k)) for pct, k in ((0.0, 0), (2.5, 8), (20.0, 128)))
    given = ("small", "awq4", MACHINE, dict.fromkeys(KINDS, 38.0), path)
    profiles = [Profile(*given), Profile(*given, launches=dict.fromkeys(KINDS, NO_PROGRAMS), link_gb_s=12.5)]
    odd = [b"", b"{}", b"[" * 100_000, b'{"model":' * 20_000, b"\xff" * 100, b'"' + b"a" * (1 << 20) + b'"']
    return [*map(msgspec.json.encode, profiles), *odd]


def check(data: bytes, folder: Path) -> None:
    """Read it as a load does, and let the slider stand on what it says."""
    os.environ["DECDEC_HOME"] = str(folder)
    path = profile_path("small", "awq4")
    path.parent.mkdir()
    path.write_bytes(data)
    assert profile_files("small", "awq4")
    try:
        found, reason = read_profile("small", "awq4", MACHINE)
    except DecdecError:
        return
    if found is None:
        assert reason
        return
    _slide(found)


def _slide(profile: Profile) -> None:
    for point in profile.path:
        assert all(0 <= each <= 1024 for each in msgspec.structs.astuple(point.k_chunk)), point
    slider = SliderState(Position(10.0))
    slider.loaded(Loaded("small", "awq4", "cpu", 2048, 1 << 20, profile.path))
    assert slider.enabled


def mutate(data: bytes, random: Random) -> bytes:
    """Values of the document replaced."""
    return mutate_json_bytes(data, random)
