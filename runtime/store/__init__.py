"""Whole models on disk: atomic writes, hashes, locks, listing.

Light by contract: imported by the front end, so no torch, numpy or transformers here.
"""

from runtime.store.building import building, publish
from runtime.store.integrity import verify_files
from runtime.store.oserrors import nearest_existing, translated
from runtime.store.records import ModelRecord, find, models, recorded, remove
from runtime.store.space import require_space
from runtime.store.units import in_words

__all__ = [
    "ModelRecord",
    "building",
    "find",
    "in_words",
    "models",
    "nearest_existing",
    "publish",
    "recorded",
    "remove",
    "require_space",
    "translated",
    "verify_files",
]
