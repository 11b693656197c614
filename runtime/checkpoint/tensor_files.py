"""The tensors of a folder's safetensors files by their names in the text model, every header validated."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from runtime.checkpoint.files import damaged, require_finite, shown, unreadable
from runtime.checkpoint.hf_config import text_name
from runtime.checkpoint.safetensors_header import FLOAT_DTYPES
from runtime.checkpoint.shards import Located
from runtime.errors import DecdecError


class TensorFiles:
    """Reads single tensors; which file holds which is given by `runtime.checkpoint.shards`."""

    def __init__(self, folder: Path, located: dict[str, Located]) -> None:
        self.folder = folder
        self._tensors: dict[str, Located] = {}
        for name, where in located.items():
            plain = text_name(name)
            if plain in self._tensors:
                raise damaged(where.file, f"two tensors are named {shown(plain)}")
            if plain is not None:
                self._tensors[plain] = where

    def names(self) -> list[str]:
        """All tensor names, in file order."""
        return list(self._tensors)

    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of one tensor; DecdecError for an unknown name."""
        return self._find(name).entry.shape

    def load(self, name: str) -> torch.Tensor:
        """One tensor as stored (float32, float16 or bfloat16); DecdecError for any other type."""
        where = self._find(name)
        if where.entry.dtype not in FLOAT_DTYPES:
            raise damaged(
                where.file,
                f"tensor {shown(name)} holds {where.entry.dtype} values, not floating-point weights",
                "use a checkpoint with bfloat16, float16 or float32 weights",
            )
        return require_finite(where.file, name, _read(where))

    def load_words(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """One int32 tensor of exactly this shape; DecdecError naming it when it is anything else."""
        where = self._find(name)
        if where.entry.dtype != "I32":
            raise damaged(where.file, f"tensor {shown(name)} holds {where.entry.dtype} values, not I32")
        self.require_shape(name, shape)
        return _read(where)

    def require_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise DecdecError unless the tensor has exactly this shape."""
        where = self._find(name)
        if where.entry.shape != shape:
            raise damaged(
                where.file,
                f"tensor {shown(name)} has the shape {list(where.entry.shape)} instead of {list(shape)}",
                "use a checkpoint of the same model",
            )

    def _find(self, name: str) -> Located:
        try:
            return self._tensors[name]
        except KeyError:
            raise DecdecError(
                f"The weights in {self.folder} are incomplete",
                f"there is no tensor {shown(name)}",
                "download the model again, or choose one of a supported family",
            ) from None


def _read(where: Located) -> torch.Tensor:
    try:
        with safe_open(where.file, framework="pt", device="cpu") as file:
            tensor: torch.Tensor = file.get_tensor(where.entry.name)
    except OSError as error:
        raise unreadable(where.file, error) from error
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise damaged(
            where.file, f"tensor {shown(where.entry.name)} cannot be read ({shown(str(error))})"
        ) from error
    if tuple(tensor.shape) != where.entry.shape:
        raise damaged(
            where.file, f"tensor {shown(where.entry.name)} changed while it was read", "start again"
        )
    return tensor
