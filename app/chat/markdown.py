"""Markdown as a cheap Rich renderable: drawn once per width, styled by the widget's stylesheet."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.theme import Theme

from app.chat.highlighting import BoundedLexer, BoundedSyntax, Highlighting
from app.markdown_rules import parser
from app.text import neutralise

# Rich's style names, by the component class that styles them.
STYLES = {
    "answer--heading": [*(f"markdown.h{level}" for level in range(1, 7)), "markdown.table.header"],
    "answer--code": ["markdown.code"],
    "answer--link": ["markdown.link", "markdown.link_url"],
    "answer--quote": ["markdown.block_quote"],
    "answer--bullet": ["markdown.item.bullet", "markdown.item.number"],
    "answer--rule": ["markdown.hr", "markdown.table.border"],
}


class _Heading(Heading):
    """Left-aligned without a box: an answer is not a document."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _CodeBlock(CodeBlock):
    """On the stylesheet's background instead of the highlighter's, and coloured in bounded time."""

    def __init__(self, language: str, theme: str, highlighting: Highlighting) -> None:
        super().__init__(language, theme)
        self._highlighting = highlighting

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> CodeBlock:
        """As Rich does it; all blocks of an answer share what finds their colours."""
        assert isinstance(markdown, _Markdown)
        return cls(token.info.partition(" ")[0] or "text", markdown.code_theme, markdown.highlighting)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        background = console.get_style("markdown.code_block").bgcolor
        code = str(self.text).rstrip()
        yield BoundedSyntax(
            code,
            BoundedLexer(self._highlighting, self.lexer_name),
            theme=self.theme,
            word_wrap=True,
            padding=(0, 1),
            background_color=background.name if background else "default",
        )


class _TableElement(TableElement):
    """Words too long for their column are broken, not cut off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE, pad_edge=False, collapse_padding=True, style="markdown.table.border")
        header = self.header.row.cells if self.header and self.header.row else []
        for column in header:
            title = column.content.copy()
            title.stylize("markdown.table.header")
            table.add_column(title, overflow="fold")
        for row in self.body.rows if self.body else []:
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Markdown(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "table_open": _TableElement,
    }

    def __init__(self, source: str, code_theme: str) -> None:
        # Links are written out: the reader sees where they go.
        super().__init__("", code_theme=code_theme, hyperlinks=False)
        self.markup, self.parsed = source, parser().parse(source)
        self.highlighting = Highlighting()


class Answer:
    """Markdown source from a model, made safe for a terminal, rendered once for each width."""

    def __init__(self, source: str, theme: Theme, code_theme: str) -> None:
        self._markdown = _Markdown(neutralise(source), code_theme)
        self._theme = theme
        self._rendered: tuple[int, list[Segment]] | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._rendered is None or self._rendered[0] != options.max_width:
            with console.use_theme(self._theme):
                self._rendered = (options.max_width, list(console.render(self._markdown, options)))
        yield from self._rendered[1]


def theme_from(style_of: Callable[[str], Style]) -> Theme:
    """A Rich theme from a widget's component classes."""
    styles = {name: style_of(component) for component, names in STYLES.items() for name in names}
    return Theme({**styles, "markdown.code_block": style_of("answer--code-block")})
