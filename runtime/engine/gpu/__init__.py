"""The engine on a GPU: a model's device form, prefill, decode steps replayed from captured graphs."""
