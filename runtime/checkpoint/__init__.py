"""Readers of model weights: safetensors folders and GGUF files, checked before use."""

from runtime.checkpoint.base import Checkpoint
from runtime.checkpoint.opening import open_checkpoint

__all__ = ["Checkpoint", "open_checkpoint"]
