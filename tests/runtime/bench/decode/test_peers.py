"""Other packages' products: what is missing has a row that says so; children that hang or fail."""

import sys

import pytest
import torch

from runtime.bench.decode import children, compiled, peers
from runtime.bench.decode.children import child_json
from runtime.bench.eager_model import build_model
from runtime.bench.shapes import ModelShape
from runtime.bench.token_formats import Input, copied, matrix_bytes

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TINY = ModelShape("Tiny", 2, 128, 128, 2, 1, 64, 50)


def test_a_package_that_is_missing_has_a_row(monkeypatch):
    monkeypatch.setitem(sys.modules, "gemlite.helper", None)
    bf16, missing = peers.measure("gemlite", TINY, DEVICE)
    assert (bf16["format"], bf16["ratio"]) == ("bf16", 1.0)
    assert missing["format"] == "Tiny, 4-bit groups, gemlite"
    assert missing["why not"].startswith("ModuleNotFoundError")


def test_this_project_s_groups_are_measured_beside_torch_s():
    shape = ModelShape("Tiny", 1, 128, 32, 1, 1, 32, 50)
    rows = list(peers.measure("torch", shape, DEVICE))
    assert [row["format"] for row in rows[:2]] == ["bf16", "4-bit groups, this project"]
    assert rows[1]["weight_bytes"] < 0.6 * rows[0]["weight_bytes"]


def test_groups_multiply_what_they_were_given():
    q = torch.randint(-60, 60, (48, 256), dtype=torch.int8, device=DEVICE)
    matrix = peers.Groups().pack(q, torch.ones(1, device=DEVICE))
    x = torch.randn(256, device=DEVICE).bfloat16()
    assert peers.Groups().multiply(matrix, Input(x)).shape == (48,)


def test_packed_matrices_are_copied_and_counted():
    packed = peers.Packed((torch.zeros(4, dtype=torch.int32), torch.zeros(2)), (1, 2))
    twin = copied(packed)
    assert twin.tensors[0].data_ptr() != packed.tensors[0].data_ptr()
    assert twin.other == (1, 2)
    assert matrix_bytes(packed) == 24


@pytest.fixture
def module(tmp_path, monkeypatch):
    def write(text):
        (tmp_path / "some_child.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return "some_child"

    return write


def test_a_child_s_last_line_counts(module):
    assert child_json(module("import sys\nprint('noise')\nprint([len(sys.argv)])"), ("a", "b"), 20) == [3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise ValueError('no such card')", "no such card"),
        ("import time\ntime.sleep(30)", "not done after"),
        ("import os\nos.abort()", "exit code"),
    ],
)
def test_a_child_that_fails_gives_the_reason(module, text, why):
    with pytest.raises(RuntimeError, match=why):
        child_json(module(text), (), 1.0 if "sleep" in text else 20)


def test_rows_of_children_that_fail_say_why(monkeypatch):
    def fail(*args):
        raise RuntimeError("it crashed")

    monkeypatch.setattr(peers, "child_json", fail)
    monkeypatch.setattr(compiled, "child_json", fail)
    assert [row["format"] for row in peers.peer_rows(TINY, 1.0)] == list(peers.PEERS)
    (row,) = compiled.compiled_rows(TINY, 1.0)
    assert row == {"model": "Tiny", "format": compiled.NAME, "why not": "it crashed"}
    assert children.child_json is not fail


def test_compiled_steps_are_timed():
    model = build_model(TINY, DEVICE)
    found = compiled.compiled_milliseconds(model, TINY, backend="eager")
    assert 0 < found["ms"] < 1e3 * found["compiling s"]
