# ruff: noqa: N802 (names of jinja2)
"""Python code for a chat template, in which every step that makes or compares something can be counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame


class BoundedCode(CodeGenerator):
    """As Jinja's own, with calls of the environment around what it writes as bare Python."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        """`a ~ b`."""
        self.write("environment.concatenated((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        """`a == b`, `a in b`, `a < b < c`."""
        self.write("(")
        self._weighed(node.expr, frame)
        for operand in node.ops:
            self.visit(operand, frame)
        self.write(")")

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:
        """An operator and what stands behind it."""
        self.write(f" {_OPERATORS[node.op]} ")
        self._weighed(node.expr, frame)

    def signature(
        self,
        node: nodes.Call | nodes.Filter | nodes.Test,
        frame: Frame,
        extra_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Arguments; `*values` is unpacked before what is called can look at it."""
        if node.dyn_args:
            unpacked = nodes.EnvironmentAttribute("unpacked", lineno=node.lineno)
            node.dyn_args = nodes.Call(unpacked, [node.dyn_args], [], None, None, lineno=node.lineno)
        super().signature(node, frame, extra_kwargs)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        """A literal; its keys are hashed, which walks over them."""
        self.write("{")
        for item in node.items:
            self._weighed(item.key, frame)
            self.write(": ")
            self.visit(item.value, frame)
            self.write(", ")
        self.write("}")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        """A slice, which copies, or an item."""
        if not isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        self.write("environment.made(")
        super().visit_Getitem(node, frame)
        self.write(")")

    def visit_ScopedEvalContextModifier(self, node: nodes.ScopedEvalContextModifier, frame: Frame) -> None:
        """`{% autoescape %}`: HTML, which no model was trained on."""
        self.fail("autoescape is not supported", node.lineno)

    def _weighed(self, node: nodes.Expr, frame: Frame) -> None:
        self.write("environment.weighed(")
        self.visit(node, frame)
        self.write(")")


_OPERATORS = {
    "eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in", "notin": "not in",
}  # fmt: skip
