"""Panics of libraries written in Rust: they arrive in Python as exceptions that are no `Exception`."""

from __future__ import annotations


def is_failure(error: BaseException) -> bool:
    """Whether a library failed, by exception or panic; False for what stops the program (Ctrl+C, exit)."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
