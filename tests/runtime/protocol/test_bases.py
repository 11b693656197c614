import pytest

from runtime.errors import DecdecError
from runtime.protocol.bases import BaseSpec


@pytest.mark.parametrize(
    ("name", "method", "bits", "mixed"),
    [("rtn4", "rtn", 4, False), ("awq3.5", "awq", 3.5, True), ("int8x3.4", "int8x", 3.4, False)],
)
def test_names_come_back(name, method, bits, mixed):
    spec = BaseSpec.parse(name)
    assert (spec.method, spec.bits, spec.mixed, spec.name) == (method, bits, mixed, name)


@pytest.mark.parametrize("name", ["rtn5", "awq", "4", "gptq4", "awq2.9", "int8x9", "packed3", "awq4/..", ""])
def test_names_that_cannot_be_are_refused(name):
    with pytest.raises(DecdecError) as caught:
        BaseSpec.parse(name)
    assert caught.value.code == 2
