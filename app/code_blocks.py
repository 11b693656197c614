"""Code in an answer: its fenced and indented blocks, to be copied without their marks."""

from __future__ import annotations

from dataclasses import dataclass

from app.markdown_rules import block_parser

_parser = block_parser()


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """`language` is what stands behind the fence, empty for none."""

    language: str
    text: str

    @property
    def first_line(self) -> str:
        """Its first line that is not blank."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")


def code_blocks(markdown: str) -> list[CodeBlock]:
    """Every block in order, also inside lists and quotes; an open fence goes to the end."""
    return [
        CodeBlock(token.info.strip().partition(" ")[0], token.content)
        for token in _parser.parse(markdown)
        if token.type in ("fence", "code_block")
    ]
