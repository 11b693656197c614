"""Readers of model weights: safetensors folders and GGUF files, checked before use."""
