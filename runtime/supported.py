"""Which models the engine can run, by their configuration. Light by contract: no torch here."""

from __future__ import annotations

# What `model_type` may be; a multimodal "gemma3" holds a "gemma3_text".
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "phi3", "gemma3_text")
# Fields of a configuration whose weights are quantised already.
QUANTISED_KEYS = ("quantization_config", "compression_config", "quantization")
