"""The sandbox that chat templates run in: transformers' language, without what makes much of little."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
from jinja2.runtime import Context, LoopContext, Macro, Namespace, Undefined

from runtime.errors import DecdecError
from runtime.text.template_budget import MAX_CHARACTERS, MAX_INT_BITS, PIECE, Budget, refuse
from runtime.text.template_code import BoundedCode
from runtime.text.template_filters import bounded_filters, check_format, check_percent
from runtime.text.template_methods import OF_CONTAINERS, OF_TEXT, check_method, check_pairs
from runtime.text.template_tests import bounded_tests

MAX_TIME_FORM = 200
# Jinja adds the variables of the loop or the block that a call stands in; only its own functions look there.
_NOT_GIVEN = frozenset({"_loop_vars", "_block_vars"})
# All else (types, functions, views of a dictionary) has ways to change a value or to hide what it holds.
_OPEN = (LoopContext, Macro, Namespace, Undefined)
_GLOBALS_LEFT_OUT = ("lipsum", "cycler")


class TemplateRefusedError(DecdecError):
    """The template itself says no (`raise_exception`), for example to a system message."""


class Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks a part for training; here it is just its content."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own declaration)

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class BoundedEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Counts in `budget` all that a rendering makes. Every rendering needs a new one.

    Loops and recursion are Python's, which a deadline can interrupt; all that happens within one step of
    Python's interpreter is bounded here. Nothing is evaluated while a template is compiled.
    """

    code_generator_class = BoundedCode
    intercepted_binops = frozenset({"+", "-", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            finalize=self._written,
            extensions=[Generation, jinja2.ext.loopcontrols],
        )
        self.budget = Budget()
        self.filters = bounded_filters(lambda: self.budget)
        self.tests = bounded_tests(lambda: self.budget)
        for name in _GLOBALS_LEFT_OUT:
            del self.globals[name]
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}

    def weighed(self, value: Any) -> Any:
        """The value, unless it is too large to compare."""
        self.budget.weigh(value)
        return value

    def unpacked(self, values: Any) -> Any:
        """What is given as `*values`: of a text, each character becomes a text."""
        if isinstance(values, str):
            self.budget.room(len(values) * PIECE)
        return values

    def made(self, value: Any) -> Any:
        """The value, counted as new."""
        return self.budget.made(value)

    def concatenated(self, parts: Iterable[Any]) -> str:
        """`a ~ b`."""
        return self.concat([str(self.weighed(part)) for part in parts])

    def concat(self, parts: Iterable[str]) -> str:
        """What a macro or a block wrote, as one text."""
        parts = list(parts)
        if sum(map(len, parts)) > MAX_CHARACTERS:
            refuse(f"it wrote over {MAX_CHARACTERS >> 20} million characters")
        text: str = self.budget.made("".join(parts))
        return text

    def call(self, context: Context, function: Any, /, *arguments: Any, **named: Any) -> Any:
        """Any call that a template makes."""
        if not isinstance(function, Macro) and function != self.unpacked:
            arguments = tuple(map(self.budget.settled, arguments))
            given = {name: value for name, value in named.items() if name not in _NOT_GIVEN}
            if function is not Namespace:
                self.budget.weigh(given)
            if function is Namespace or function is dict:
                for each in arguments:
                    check_pairs(each)
            check_method(self.budget, function, (*arguments, *given.values()))
        return self.made(super().call(context, function, *arguments, **named))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Operators that can make something large."""
        if operator == "**":
            refuse("the operator ** is not allowed here")
        if operator == "%" and isinstance(left, str):
            check_percent(self.budget, left, right)
        elif operator == "-":
            # Keys and items are sets: they hash what is taken away.
            self.budget.weigh((left, right))
        elif _size_of_result(operator, left, right) > MAX_CHARACTERS:
            refuse("a text or a list is repeated too often")
        return self.made(super().call_binop(context, operator, left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item; its name is hashed."""
        return super().getitem(obj, self.weighed(argument))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Of texts and containers only methods whose cost is known."""
        if isinstance(obj, str):
            return attr in OF_TEXT
        if isinstance(obj, list | tuple | dict):
            return attr in OF_CONTAINERS
        return isinstance(obj, _OPEN) and bool(super().is_safe_attribute(obj, attr, value))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`text.format`, with its widths and repetitions looked at first."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None or value.__name__ != "format":
            return None
        text = value.__self__

        @functools.wraps(wrapped)
        def checked(*arguments: Any, **named: Any) -> str:
            check_format(self.budget, text, [arguments, named])
            return wrapped(*arguments, **named)

        return checked

    @jinja2.pass_context
    def _written(self, context: Context, value: Any) -> Any:
        """A value on its way to the output."""
        weight = self.budget.weigh(value)
        self.budget.spend(64 if isinstance(value, str) else 64 + weight)
        return value


def _size_of_result(operator: str, left: Any, right: Any) -> int:
    """Characters or elements that `+` or `*` gives; of numbers as many as are too many."""
    if isinstance(left, int) and isinstance(right, int):
        return MAX_CHARACTERS + 1 if left.bit_length() + right.bit_length() > 2 * MAX_INT_BITS else 0
    if operator == "+":
        return sum(len(each) for each in (left, right) if hasattr(each, "__len__"))
    sized, count = (left, right) if hasattr(left, "__len__") else (right, left)
    return len(sized) * count if hasattr(sized, "__len__") and isinstance(count, int) else 0


def _raise_exception(message: str) -> NoReturn:
    raise TemplateRefusedError("The model's chat template refuses this conversation", str(message)[:200])


def _strftime_now(form: str) -> str:
    if len(form) > MAX_TIME_FORM:
        refuse("a form of a date is too long")
    return datetime.now().strftime(form)
