"""What a copy through the terminal (OSC 52) can be trusted with."""

from __future__ import annotations

import base64

from app import format

# xterm and screen take no longer sequences; most terminals take more.
SAFE_BYTES = 74_994


def copied(text: str) -> str:
    """The sentence after a copy: how much, and that it may be too much for some terminals."""
    coded = len(base64.b64encode(text.encode("utf-8")))
    told = f"Sent {format.number(len(text))} characters to the terminal's clipboard."
    if coded <= SAFE_BYTES:
        return told
    return f"{told} Some terminals take at most {format.size(SAFE_BYTES)} at once; /export writes a file."
