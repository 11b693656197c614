"""Which base a prepared model is loaded with."""

import pytest

from app.models import Target, base_of, target
from runtime import store
from runtime.errors import DecdecError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("bases", "wanted"),
    [
        (["awq4"], "awq4"),
        (["awq3", "awq4"], "awq4"),
        (["int8x3"], "int8x3"),
        (["rtn3", "awq3"], "awq3"),
        ([], "awq4"),
    ],
)
def test_the_usual_base_or_what_there_is(bases, wanted):
    with store.building("m") as staging:
        (staging / "weights.bin").write_bytes(b"x")
        store.publish("m", staging, {"source": "a test", "bits_per_weight": 5.0, "bases": bases})
    assert base_of("m") == wanted
    assert base_of("m", "int8") == "int8"
    assert base_of("m", "squeezellm3") == wanted
    assert base_of("m", bases[-1] if bases else "awq4") == (bases[-1] if bases else "awq4")


def test_a_model_that_is_not_here_gets_the_usual_one():
    assert base_of("nobody") == "awq4"


def imported():
    record = {"kind": "folder", "path": "/models/tiny", "source": "folder /models/tiny"}
    with store.building("mine", {"source": record}) as staging:
        (staging / "weights.bin").write_bytes(b"x")
        store.publish("mine", staging, {**record, "bits_per_weight": 5.0})
    return store.find("mine").path


def test_an_imported_model_is_made_again_from_where_it_came():
    imported()
    assert (target("mine").name, target("mine").source) == ("mine", "/models/tiny")


@pytest.mark.parametrize("lost", ["weights.bin", "manifest.json"])
def test_so_is_a_damaged_one(lost):
    (imported() / lost).unlink()
    assert target("MINE") == Target("mine", "/models/tiny", False, left="damaged")


def test_so_is_a_half_made_one():
    with store.building("mine", {"source": {"kind": "gguf", "path": "/models/x.gguf"}}) as staging:
        (staging / "weights.bin").write_bytes(b"x")
    assert target("mine") == Target("mine", "/models/x.gguf", False, left="half-made")


def test_one_that_does_not_say_where_it_came_from_says_what_to_do():
    folder = imported()
    (folder / "manifest.json").write_text("{}")
    (folder / ".identity.json").unlink()
    with pytest.raises(DecdecError, match=r"mine cannot be made again: .* import PATH --name mine, or"):
        target("mine")
