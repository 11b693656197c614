"""Which base a prepared model is loaded with."""

import pytest

from app.models import base_of, target
from runtime import store


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


def test_an_imported_model_is_made_again_from_where_it_came():
    record = {
        "kind": "folder",
        "path": "/models/tiny",
        "source": "folder /models/tiny",
        "bits_per_weight": 5.0,
    }
    with store.building("mine") as staging:
        (staging / "weights.bin").write_bytes(b"x")
        store.publish("mine", staging, record)
    assert (target("mine").name, target("mine").source) == ("mine", "/models/tiny")
