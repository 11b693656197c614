"""What a model itself says about how its answers are drawn."""

from __future__ import annotations

import dataclasses

from runtime import store
from runtime.errors import DecdecError


def own_sampling(model: str) -> dict[str, float]:
    """The settings in force where a person sets none, by name; empty where the model cannot be read.

    Slow at the first call: not for the event loop.
    """
    from runtime.generation.settings import model_defaults, resolve
    from runtime.protocol.commands import Sampling

    try:
        found = resolve(Sampling(), model_defaults(store.find(model).path))
    except DecdecError:
        return {}
    return {name: value for name, value in dataclasses.asdict(found).items() if value is not None}
