"""Conversations that stay: one SQLite file, searched in full text, exported and imported."""

from app.history.recorder import Recorder
from app.history.store import History

__all__ = ["History", "Recorder"]
