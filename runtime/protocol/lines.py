"""JSON lines: one message a line, checked on the way in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, TypeVar

import msgspec

from runtime.errors import DecdecError
from runtime.protocol.commands import Command
from runtime.protocol.events import Event

MAX_LINE_BYTES = 64 << 20

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_commands = msgspec.json.Decoder(Command)
_events = msgspec.json.Decoder(Event)


def encode(message: Command | Event) -> bytes:
    """One message as a line of JSON, newline included. What is no Unicode in it, as a shell's argument in
    another encoding may bring, becomes "?".
    """
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(message), ensure_ascii=False)
        return text.encode("utf-8", "replace") + b"\n"


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; of one that is too long only the beginning, which no decoder takes."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        yield line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES + 1)


def decode_command(line: bytes) -> Command:
    """A command from a line; raises DecdecError on anything malformed."""
    return _decode(_commands, line, "command")


def decode_event(line: bytes) -> Event:
    """An event from a line; raises DecdecError on anything malformed."""
    return _decode(_events, line, "event")


def _decode(decoder: msgspec.json.Decoder[T], line: bytes, kind: str) -> T:
    if len(line) > MAX_LINE_BYTES:
        raise DecdecError(f"A {kind} of {len(line)} bytes was refused", f"the limit is {MAX_LINE_BYTES}")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DecdecError(f"A {kind} could not be read", str(error)) from error
