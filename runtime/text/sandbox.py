"""Rendering a chat template that came with a model: a program from outside, so all that it does is bounded.

Same language as transformers' templates: immutable sandbox, trimmed blocks, loop controls,
`{% generation %}`, `tojson` without HTML escapes, `raise_exception`, `strftime_now`.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import jinja2

from runtime.errors import DecdecError
from runtime.text.template_budget import MAX_CHARACTERS, Budget
from runtime.text.template_environment import BoundedEnvironment, TemplateRefusedError

__all__ = ["TemplateRefusedError", "compile_template", "render"]

MAX_SECONDS = 1.0
# The longest templates of well-known models have a fifth of it.
MAX_TEMPLATE_CHARACTERS = 100_000
_AGAIN_S = 0.1


class _TimeUp(BaseException):
    """Thrown into a template that does not end; no `except Exception` on the way can catch it."""


def compile_template(source: str) -> jinja2.Template:
    """A template ready to render; raises DecdecError on a syntax error or absurd size."""
    if len(source) > MAX_TEMPLATE_CHARACTERS:
        raise DecdecError("The model's chat template is refused", f"it has {len(source)} characters")
    with _as_sentences(), _deadline(MAX_SECONDS):
        return BoundedEnvironment().from_string(source)


def render(template: jinja2.Template, **variables: Any) -> str:
    """The rendered text; raises DecdecError when the template fails, never ends, or writes too much."""
    environment = template.environment
    assert isinstance(environment, BoundedEnvironment)
    environment.budget = Budget(list(variables.values()))
    with _as_sentences(), _deadline(MAX_SECONDS):
        parts, length = [], 0
        for part in template.generate(**variables):
            parts.append(part)
            length += len(part)
            if length > MAX_CHARACTERS:
                raise DecdecError("The chat template failed", f"it wrote over {MAX_CHARACTERS} characters")
        return "".join(parts)


@contextlib.contextmanager
def _as_sentences() -> Iterator[None]:
    try:
        yield
    except _TimeUp as error:
        raise DecdecError("The chat template failed", f"it ran for over {MAX_SECONDS:g} s") from error
    except DecdecError:
        raise
    except Exception as error:  # a template can raise whatever Python can
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DecdecError("The model's chat template failed", reason) from error


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Throw _TimeUp into this thread after `seconds`: template loops are Python loops, so it arrives.

    It is thrown again where it was lost, as in a function that Python calls by itself.
    """
    thread, lock, over = threading.get_ident(), threading.Lock(), threading.Event()

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            with lock:
                if not over.is_set():
                    _throw(thread, _TimeUp)
            wait = _AGAIN_S

    threading.Thread(target=watch, daemon=True, name="template-deadline").start()
    try:
        yield
    finally:
        try:
            with lock:
                over.set()
        finally:
            over.set()
            _throw(thread, None)


def _throw(thread: int, error: type[BaseException] | None) -> None:
    """Make a thread raise at its next step; None takes back what it has not raised yet."""
    thrown = ctypes.py_object() if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), thrown)
