"""Bounded reading of small files, and the check for values that are no numbers."""

from pathlib import Path

import pytest
import torch

from runtime.checkpoint.files import read_bounded, read_object, require_finite, shown
from runtime.errors import DecdecError

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extreme_but_finite_values_pass(dtype):
    limits = torch.finfo(dtype)
    values = torch.tensor([0.0, -0.0, limits.max, limits.min, limits.tiny, -1.0], dtype=dtype)
    assert require_finite(Path("m"), "w", values) is values
    require_finite(Path("m"), "w", torch.empty(0, dtype=dtype))
    require_finite(Path("m"), "w", values[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_one_bad_value_anywhere_is_found(dtype, sign, bad):
    for place in (0, 3, 5):
        values = torch.ones(2, 3, dtype=dtype)
        values.view(-1)[place] = torch.copysign(torch.tensor(bad), torch.tensor(sign)).to(dtype)
        with pytest.raises(DecdecError, match="tensor w holds values that are not numbers"):
            require_finite(Path("m"), "w", values.T)


def test_unreadable_file_is_one_sentence(tmp_path):
    with pytest.raises(DecdecError, match="no such file"):
        read_bounded(tmp_path / "none")
    with pytest.raises(DecdecError, match="no such file"):
        read_bounded(tmp_path)
    (tmp_path / "big").write_bytes(bytes(11))
    with pytest.raises(DecdecError, match="11 bytes where at most 10"):
        read_bounded(tmp_path / "big", 10)


def test_objects(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": {"b": [1]}}')
    assert read_object(path) == {"a": {"b": [1]}}
    path.write_text('{"a": {"b": 1, "b": 2}}')
    with pytest.raises(DecdecError, match="repeated"):
        read_object(path)


def test_names_in_messages_are_short_and_printable():
    assert shown("model.norm.weight") == "model.norm.weight"
    assert shown("a\x1b[2Jb").isprintable()
    assert len(shown("x" * 10_000)) < 200
