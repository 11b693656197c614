"""What an AWQ or GPTQ checkpoint says about how it is packed, checked before any tensor is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runtime.checkpoint.files import damaged, read_object, shown
from runtime.checkpoint.hf_config import MAX_CONFIG_BYTES
from runtime.errors import DecdecError

PackedMethod = Literal["awq", "gptq"]

BITS = 4
GROUPS = (32, 64, 128, 256, 512, 1024)
WHOLE_ROW = -1
# Where older tools wrote the settings, instead of into config.json.
SEPARATE: dict[str, PackedMethod] = {"quantize_config.json": "gptq", "quant_config.json": "awq"}
# The same setting under the names that tools have used.
_NAMES = {"bits": ("bits", "w_bit"), "group": ("group_size", "q_group_size")}
_FORMATS: dict[PackedMethod, tuple[str, ...]] = {"awq": ("gemm",), "gptq": ("gptq", "gptq_v2")}
_FORMAT_NAMES: dict[PackedMethod, tuple[str, ...]] = {
    "awq": ("version",),
    "gptq": ("checkpoint_format", "format"),
}


@dataclass(frozen=True, slots=True)
class PackedSettings:
    """`group`: inputs that share a scale, or WHOLE_ROW; `zero_offset`: added to the zero points stored."""

    method: PackedMethod
    group: int
    zero_offset: int

    def __post_init__(self) -> None:
        if self.group != WHOLE_ROW and self.group not in GROUPS:
            raise ValueError(f"groups of {self.group} inputs")

    def group_of(self, n_in: int) -> int:
        """Inputs that share a scale in a linear of n_in."""
        return n_in if self.group == WHOLE_ROW else self.group


def read_settings(folder: Path) -> PackedSettings:
    """The settings of a folder; DecdecError where there are none, or none that can be read here."""
    path, settings, method = _find(folder)
    bits = _setting(settings, "bits")
    if bits != BITS or isinstance(bits, bool):
        raise _refused(path, f"its weights have {shown(str(bits))} bits", "use a checkpoint of 4 bits")
    group = _setting(settings, "group")
    if type(group) is not int or (group != WHOLE_ROW and group not in GROUPS):
        raise _refused(path, f"its groups have {shown(str(group))} inputs")
    layout = _layout(path, settings, method)
    if method == "awq" and settings.get("zero_point", True) is not True:
        raise _refused(path, "it has no zero points")
    return PackedSettings(method, group, 1 if layout == "gptq" else 0)


def _find(folder: Path) -> tuple[Path, dict[str, Any], PackedMethod]:
    path = folder / "config.json"
    settings = read_object(path, MAX_CONFIG_BYTES).get("quantization_config")
    if isinstance(settings, dict):
        return path, settings, _method(path, settings.get("quant_method"))
    for name, method in SEPARATE.items():
        if (folder / name).exists():
            settings = read_object(folder / name, MAX_CONFIG_BYTES)
            return folder / name, settings, _method(folder / name, settings.get("quant_method", method))
    raise _refused(path, "it does not say how its weights are quantised")


def _method(path: Path, value: Any) -> PackedMethod:
    if value == "awq":
        return "awq"
    if value == "gptq":
        return "gptq"
    raise _refused(path, f"its weights are quantised by {shown(str(value))}")


def _setting(settings: dict[str, Any], name: str) -> Any:
    return next((settings[key] for key in _NAMES[name] if key in settings), None)


def _layout(path: Path, settings: dict[str, Any], method: PackedMethod) -> str:
    known = _FORMATS[method]
    stated = next((settings[key] for key in _FORMAT_NAMES[method] if settings.get(key)), known[0])
    layout = str(stated).lower()
    if layout not in known or settings.get("is_marlin_format"):
        shape = "marlin" if layout in known else layout
        raise _refused(path, f"its weights lie in the layout {shown(shape)}")
    return layout


def _refused(path: Path, why: str, fix: str = "") -> DecdecError:
    return damaged(path, why, fix or "use an AWQ (GEMM) or GPTQ checkpoint of 4 bits")
