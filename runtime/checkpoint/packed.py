"""AWQ and GPTQ checkpoints of 4 bits in the hub's common layouts: linears as bases, all else as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.checkpoint.files import read_object
from runtime.checkpoint.hf_config import MAX_CONFIG_BYTES, text_config
from runtime.checkpoint.packed_awq import read_awq
from runtime.checkpoint.packed_gptq import read_gptq
from runtime.checkpoint.packed_linear import NIBBLES, PackedLinear
from runtime.checkpoint.packed_settings import read_settings
from runtime.checkpoint.shards import Located, locate, locate_in
from runtime.checkpoint.tensor_files import TensorFiles
from runtime.errors import DecdecError

_READERS = {"awq": read_awq, "gptq": read_gptq}


class PackedCheckpoint(TensorFiles):
    """A folder of quantised weights; settings and every header are validated on construction.

    Norms and other plain tensors are read by `load`, as in any checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.settings = read_settings(folder)
        path = folder / "config.json"
        self.config: dict[str, Any] = text_config(path, read_object(path, MAX_CONFIG_BYTES))
        super().__init__(folder, _located(folder))

    def linear(self, name: str, shape: tuple[int, int]) -> PackedLinear:
        """The linear whose weight [n_out, n_in] a plain checkpoint calls `name` (`….q_proj.weight`).

        Raises DecdecError naming what is missing, damaged, or of another shape.
        """
        n_out, n_in = shape
        group = self.settings.group_of(n_in)
        if n_out % NIBBLES or n_in % NIBBLES or (self.settings.method == "awq" and n_in % group):
            raise DecdecError(
                f"The checkpoint in {self.folder} cannot be a base",
                f"a matrix {n_out} × {n_in} cannot be packed by eights in groups of {group}",
                "use a checkpoint of the same model",
            )
        reader = _READERS[self.settings.method]
        return reader(self, name.removesuffix(".weight"), shape, self.settings)

    def write_tokenizer(self, folder: Path) -> None:
        """Nothing: the tokenizer is that of the reference checkpoint."""


def _located(folder: Path) -> dict[str, Located]:
    """As in any folder; GPTQ tools also name a single file after its bits and group."""
    files = sorted(folder.glob("*.safetensors"))
    return locate_in(files[0]) if len(files) == 1 else locate(folder)
