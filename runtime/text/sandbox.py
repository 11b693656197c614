"""Rendering a chat template that came with a model: a program from outside, so time and output are bounded.

Same language as transformers' templates: immutable sandbox, trimmed blocks, loop controls,
`{% generation %}`, `tojson` without HTML escapes, `raise_exception`, `strftime_now`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from runtime.errors import DecdecError

MAX_SECONDS = 3.0
MAX_CHARACTERS = 32 << 20
MAX_TEMPLATE_CHARACTERS = 1 << 20


class TemplateRefusedError(DecdecError):
    """The template itself says no (`raise_exception`), for example to a system message."""


class _TimeUp(BaseException):
    """Thrown into a template that does not end; no `except Exception` on the way can catch it."""


class _Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks a part for training; here it is just its content."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own declaration)

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Refuses the operators that make something huge out of something small in one step."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or (operator == "%" and isinstance(left, str) and re.search(r"\d{5}|\*", left)):
            raise jinja2.TemplateRuntimeError(f"the operator {operator} is not allowed here")
        if operator == "*" and _repeated_length(left, right) > MAX_CHARACTERS:
            raise jinja2.TemplateRuntimeError("a text is repeated too often")
        return super().call_binop(context, operator, left, right)


def _repeated_length(left: Any, right: Any) -> int:
    sized, count = (left, right) if hasattr(left, "__len__") else (right, left)
    return len(sized) * count if hasattr(sized, "__len__") and isinstance(count, int) else 0


def compile_template(source: str) -> jinja2.Template:
    """A template ready to render; raises DecdecError on a syntax error or absurd size."""
    if len(source) > MAX_TEMPLATE_CHARACTERS:
        raise DecdecError("The model's chat template is refused", f"it has {len(source)} characters")
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    with _as_sentences():
        return environment.from_string(source)


def render(template: jinja2.Template, **variables: Any) -> str:
    """The rendered text; raises DecdecError when the template fails, never ends, or writes too much."""
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
    """Throw _TimeUp into this thread after `seconds`: template loops are Python loops, so it arrives."""
    thread, lock, over = threading.get_ident(), threading.Lock(), False

    def interrupt() -> None:
        with lock:
            if not over:
                _throw(thread, _TimeUp)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True


def _throw(thread: int, error: type[BaseException]) -> None:
    set_async = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_async(ctypes.c_ulong(thread), ctypes.py_object(error))


def _raise_exception(message: str) -> NoReturn:
    raise TemplateRefusedError("The model's chat template refuses this conversation", str(message)[:200])


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: jinja2's own filter escapes HTML, which no model was trained on."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
