"""What is no whole model is listed too, and what was half made goes without touching a whole one."""

import os
from pathlib import Path

import pytest

from runtime import store
from runtime.errors import DecdecError
from runtime.store import folders
from runtime.store.leftovers import discard_half_made, half_made_bytes, leftovers
from runtime.store.locks import exclusive

RECORD = {"source": "hub owner/m", "kind": "hub", "repo": "owner/m", "bits_per_weight": 5.0}


def half_made(name, size=10, identity=None):
    with store.building(name, identity) as staging:
        (staging / "part.bin").write_bytes(b"x" * size)


def whole(name):
    with store.building(name) as staging:
        (staging / "weights.bin").write_bytes(b"x" * 100)
        return store.publish(name, staging, RECORD)


def test_whole_models_are_none():
    whole("good")
    half_made("good", 7)
    assert leftovers() == [], "it is usable, and only being extended"


def test_half_made_ones_know_their_source():
    half_made("later", 7, {"source": {"kind": "hub", "repo": "o/later"}, "fingerprint": "f"})
    half_made("early", 5)
    assert [(left.name, left.state, left.record) for left in leftovers()] == [
        ("early", "half-made", {}),
        ("later", "half-made", {"kind": "hub", "repo": "o/later"}),
    ]
    assert leftovers()[0].bytes == 5


def test_a_damaged_one_is_listed_with_its_record():
    (whole("bad").path / "weights.bin").write_bytes(b"short")
    (left,) = leftovers()
    assert (left.name, left.state, left.record["repo"]) == ("bad", "damaged", "owner/m")


def test_discarding_frees_what_was_half_made_and_keeps_the_whole():
    whole("good")
    half_made("good", 70)
    made = half_made_bytes("good")
    assert made >= 70
    assert discard_half_made("good") == made
    assert not folders.staging("good").exists()
    assert store.find("good").bytes == 100
    assert (half_made_bytes("good"), discard_half_made("good")) == (0, 0)


def test_nothing_is_discarded_under_somebody_who_works_on_it():
    half_made("busy")
    with exclusive("model-busy", "Work"), pytest.raises(DecdecError, match="already going on"):
        discard_half_made("busy")
    assert half_made_bytes("busy") == 10


def test_an_empty_store_has_none():
    assert leftovers() == []


def strange(home):
    folder = home / "models" / "comfy"
    folder.mkdir(parents=True)
    (folder / "sd.ckpt").write_bytes(b"x" * 50)
    return folder / "sd.ckpt"


def test_a_folder_of_somebody_else_is_no_model_and_is_never_deleted(home):
    theirs = strange(home)
    assert leftovers() == []
    assert store.models() == []
    with pytest.raises(DecdecError, match="no local model"):
        store.remove("comfy")
    with pytest.raises(DecdecError, match="holds no model of this program"), store.building("comfy"):
        pass
    assert theirs.exists()


def test_an_empty_folder_is_in_nobody_s_way(home):
    strange(home).unlink()
    assert whole("comfy").name == "comfy"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")
def test_a_pipe_in_the_place_of_what_a_build_notes_is_not_waited_for():
    half_made("m", 5, {"source": {"kind": "hub"}})
    note = folders.staging("m") / folders.IDENTITY
    note.unlink()
    os.mkfifo(note)
    assert [(left.name, left.record) for left in leftovers()] == [("m", {})]
    half_made("m", 5, {"source": {"kind": "hub"}})
    assert leftovers()[0].record == {"kind": "hub"}


def test_a_folder_that_cannot_be_looked_into_hides_no_model(home, monkeypatch):
    theirs = strange(home).parent
    whole("good")
    exists = Path.exists

    def refused(path, **options):
        if path.parent == theirs:
            raise PermissionError(13, "Permission denied")
        return exists(path, **options)

    monkeypatch.setattr(Path, "exists", refused)
    assert [model.name for model in store.models()] == ["good"]
    assert leftovers() == []
