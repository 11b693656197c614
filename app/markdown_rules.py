"""What counts as Markdown in an answer: the same for drawing, for cutting while it streams, for copying.

CommonMark takes text away that a reader would miss: tags that stand outside code (`List<String>`), addresses
of pictures, lists of sources that nothing refers to. Without those rules they are the text they are.
"""

from __future__ import annotations

from markdown_it import MarkdownIt

_HIDING = ["html_block", "html_inline", "reference", "image"]
_INLINE = ["inline", "text_join"]
# What is nested deeper is left out by the parser; its own limit takes ten lists in each other.
_MAX_NESTING = 100


def parser() -> MarkdownIt:
    """Blocks and what is in them, with tables and strikethrough."""
    rules = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    return rules.enable(["table", "strikethrough"]).disable(_HIDING)


def block_parser() -> MarkdownIt:
    """Only where blocks begin and end."""
    return parser().disable(_INLINE)
