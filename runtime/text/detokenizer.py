"""Token ids to text, as they come: every character is shown whole or not yet.

A token is a run of bytes, so an incremental UTF-8 decoder is the whole state: constant work per token, and
the same text as decoding all ids at once. Two alphabets are in use: GPT-2's, where every byte has a printable
stand-in, and SentencePiece's, where U+2581 is a space and `<0x0A>` a byte.
"""

from __future__ import annotations

import codecs
import re

from runtime.errors import DecdecError
from runtime.text.tokenizer import Tokenizer

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SENTENCEPIECE = frozenset({"Replace", "Metaspace", "ByteFallback", "Fuse", "Strip"})


def _gpt2_bytes() -> dict[str, int]:
    """The byte behind each character of GPT-2's alphabet (printable Latin-1 is itself)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_GPT2_BYTES = _gpt2_bytes()


def byte_level_bytes(token: str) -> bytes:
    """Bytes of a token in GPT-2's alphabet; one with other characters (an added token) is its own UTF-8."""
    try:
        return bytes(_GPT2_BYTES[character] for character in token)
    except KeyError:
        return token.encode("utf-8")


def sentencepiece_bytes(token: str) -> bytes:
    """Bytes of a SentencePiece token."""
    if match := _BYTE_TOKEN.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace("\u2581", " ").encode("utf-8")


class Detokenizer:
    """`push` every generated id, `finish` once; the pieces joined are the answer."""

    def __init__(self, tokenizer: Tokenizer, *, continues: bool = False) -> None:
        """`continues`: the ids follow other text, so that a space before the first word belongs to them.

        Raises DecdecError for a tokenizer whose way back to text is neither of the two known ones.
        """
        self._tokenizer = tokenizer
        kinds = tokenizer.decoder_kinds
        self._bytes = byte_level_bytes if "ByteLevel" in kinds else sentencepiece_bytes
        if "ByteLevel" not in kinds and not kinds <= _SENTENCEPIECE:
            raise DecdecError("The tokenizer is not supported", f"it decodes by {', '.join(sorted(kinds))}")
        self._strip_space = tokenizer.strips_first_space and not continues
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def whole(self) -> bool:
        """Whether no character waits for its other bytes."""
        return not self._decoder.getstate()[0]

    def push(self, token_id: int) -> str:
        """Text that is complete now; hidden control tokens and unknown ids have none."""
        token = self._tokenizer.token_of(token_id)
        if token is None or token_id in self._tokenizer.hidden:
            return ""
        text = self._decoder.decode(self._bytes(token))
        if self._strip_space and text:
            self._strip_space = False
            return text.removeprefix(" ")
        return text

    def finish(self) -> str:
        """The rest: nothing, for a character whose bytes did not all come is not shown."""
        self._decoder.reset()
        return ""
