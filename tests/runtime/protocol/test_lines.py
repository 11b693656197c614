"""One message is one line, whatever is in it."""

from __future__ import annotations

import pytest

from runtime.errors import DecdecError
from runtime.protocol.commands import Generate, Message, Prepare
from runtime.protocol.events import Failed
from runtime.protocol.lines import decode_command, decode_event, encode


def test_text_comes_back_and_stays_on_its_line():
    command = Generate((Message("user", 'a\nb "c" 日本 \u2028 \x1b'),))
    line = encode(command)
    assert line.count(b"\n") == 1
    assert decode_command(line) == command


def test_bytes_of_another_encoding_become_question_marks():
    # How Python hands over the Latin-1 argument b"caf\xe9".
    assert decode_command(encode(Prepare("caf\udce9"))) == Prepare("caf?")
    assert decode_event(encode(Failed("prepare", "caf\udce9 is missing"))) == Failed(
        "prepare", "caf? is missing"
    )


@pytest.mark.parametrize("line", [b"", b"{}", b"[]\n", b'{"type": "no such"}', b"\xff"])
def test_anything_else_is_refused(line):
    with pytest.raises(DecdecError, match="could not be read"):
        decode_command(line)
