"""config.json of a Hugging Face folder, reduced to the text model where it wraps one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.checkpoint.files import damaged, read_object, shown
from runtime.errors import DecdecError
from runtime.supported import QUANTISED_KEYS

MAX_CONFIG_BYTES = 4 << 20

# Where the text model's tensors lie in a multimodal Gemma 3: as published, and as transformers 5 saves it.
TEXT_PREFIXES = (("language_model.", ""), ("model.language_model.", "model."))
OTHER_PREFIXES = (
    "vision_tower.",
    "multi_modal_projector.",
    "model.vision_tower.",
    "model.multi_modal_projector.",
)


def read_config(folder: Path) -> dict[str, Any]:
    """The text model's configuration; raises DecdecError for quantised or nameless models."""
    path = folder / "config.json"
    config = read_object(path, MAX_CONFIG_BYTES)
    if not isinstance(config.get("model_type"), str):
        raise damaged(path, "it names no model_type", "use a folder in Hugging Face layout")
    _refuse_quantised(folder, config)
    return text_config(path, config)


def text_name(name: str) -> str | None:
    """A tensor's name in the text model alone; None for a tensor of another part."""
    if name.startswith(OTHER_PREFIXES):
        return None
    for prefix, replacement in TEXT_PREFIXES:
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    return name


def _refuse_quantised(folder: Path, config: dict[str, Any]) -> None:
    settings = next((config[key] for key in QUANTISED_KEYS if config.get(key)), None)
    if settings is None:
        return
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    what = f"The weights in {folder} cannot be used as a source"
    if method == "int8x":
        raise DecdecError(what, "they are INT8-X already", "open the folder as an INT8-X model")
    why = f"they are already quantised ({shown(str(method or 'unknown method'))})"
    raise DecdecError(what, why, "use the model's bfloat16 checkpoint")


def text_config(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The text model's part of a configuration; the whole where it is a text model's."""
    if config.get("model_type") != "gemma3":
        return config
    text = config.get("text_config")
    if not isinstance(text, dict):
        raise damaged(path, "it has no text_config")
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if key in config}
    return {**text, **ids, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"]}
