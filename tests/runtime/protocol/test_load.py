"""How a model may be loaded."""

import pytest

from runtime.errors import DecdecError
from runtime.protocol.commands import Load
from runtime.protocol.lines import decode_command, encode


def test_every_field_crosses_the_pipe():
    command = Load("m", "awq3", 4096, False, 8)
    assert decode_command(encode(command)) == command
    assert decode_command(b'{"type":"load","model":"m"}') == Load("m", context=None, prompt_correction=True)


@pytest.mark.parametrize("fields", ['"kv_bits":4', '"context":1', '"base":"awq9"'])
def test_impossible_loads_are_refused(fields):
    with pytest.raises(DecdecError):
        decode_command(b'{"type":"load","model":"m",%s}' % fields.encode())
