"""What a kill leaves is put right by whoever looks next: tests/faults/kills kills at every boundary."""

import os
import subprocess
import sys

import pytest

from runtime import store
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store import atomic, folders, move_record, moving, records, settling
from runtime.store.atomic import temporary_for
from runtime.store.locks import exclusive
from runtime.store.move_record import Leaving


@pytest.fixture
def model():
    with store.building("m") as staging:
        atomic.write_bytes(staging / "weights.bin", b"w" * 100)
        return store.publish("m", staging, {"source": "a test", "bits_per_weight": 6.4})


def names():
    return [record.name for record in store.models()]


def test_a_model_whose_replacement_was_cut_in_two_is_back_at_once(model):
    os.rename(model.path, folders.old("m"))
    assert names() == ["m"]
    os.rename(model.path, folders.old("m"))
    assert store.find("m").path == model.path
    assert not folders.old("m").exists()


def test_what_is_being_replaced_now_is_left_alone(model):
    os.rename(model.path, folders.old("m"))
    with exclusive("model-m", "Work on m"):
        assert names() == []
    assert names() == ["m"]


def test_a_deleted_model_leaves_by_one_rename_and_is_swept(model, monkeypatch):
    monkeypatch.setattr(records, "delete", lambda folder: 0)
    store.remove("m")
    assert folders.removed("m").exists()
    assert names() == []
    assert not folders.removed("m").exists()


def test_files_of_dead_writers_go_and_others_stay(home):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = home / "pulls" / "m.json"
    mine = temporary_for(path)
    theirs = path.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
    elsewhere = path.with_name(theirs.name.replace(f".{atomic._host()}-", ".00000000-"))
    path.parent.mkdir(parents=True)
    for each in (mine, theirs, elsewhere):
        each.write_text("half")
    atomic.write_bytes(path, b"{}")
    assert sorted(os.listdir(path.parent)) == sorted([path.name, mine.name, elsewhere.name])
    theirs.write_text("half")
    settling._sweep.cache_clear()
    settling.settle()
    assert not theirs.exists()
    assert mine.exists()


def half_moved(source, target, how):
    """As a kill leaves it just before the switch."""
    leaving = Leaving(str(target), how, (str(target),))
    move_record.begin(source, leaving)
    target.mkdir()
    (moving._rename if how == "rename" else moving._copy)(source, target, JobContext.silent())
    move_record.arrive(source, target)


@pytest.mark.parametrize("how", ["rename", "copy"])
def test_a_move_that_was_killed_before_the_switch_is_undone(model, home, tmp_path, how):
    half_moved(home, tmp_path / "there", how)
    assert names() == ["m"]
    assert not (tmp_path / "there").exists()
    assert not list(home.glob(".mov*"))


@pytest.mark.parametrize("how", ["rename", "copy"])
def test_a_move_that_was_killed_behind_the_switch_is_ended(model, home, tmp_path, how, monkeypatch):
    half_moved(home, tmp_path / "there", how)
    monkeypatch.setenv("DECDEC_CACHE", str(tmp_path / "there"))
    assert names() == ["m"]
    assert not (home / "models").exists()
    assert not list(home.glob(".mov*")) + list((tmp_path / "there").glob(".mov*"))


def test_a_move_that_goes_on_is_left_alone(model, home, tmp_path):
    half_moved(home, tmp_path / "there", "rename")
    with exclusive("model-x", "Work on x"):
        assert names() == []
        assert (tmp_path / "there" / "models" / "m").exists()
    assert names() == ["m"]


def test_a_record_that_cannot_be_read_changes_nothing(model, home):
    (home / ".moving-to.json").write_text("{")
    (home / ".moved-from.json").write_text("[]")
    assert names() == ["m"]


def test_a_full_disk_is_left_without_a_record(model, home, tmp_path, monkeypatch):
    def full(path, value):
        raise DecdecError("Writing failed", "the disk is full")

    monkeypatch.setattr(move_record.atomic, "write_json", full)
    move_record.begin(home, Leaving(str(tmp_path / "there"), "rename"))
    assert not (home / ".moving-to.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("place", [folders.old, folders.removed])
def test_a_link_that_stands_for_a_model_goes_and_what_it_leads_to_stays(model, tmp_path, place):
    far = tmp_path / "big disk" / "m"
    far.parent.mkdir()
    os.rename(model.path, far)
    os.symlink(far, model.path)
    assert names() == ["m"]
    os.rename(model.path, place("m"))
    with store.building("m") as staging:
        atomic.write_bytes(staging / "weights.bin", b"n" * 100)
        store.publish("m", staging, {"source": "a test", "bits_per_weight": 6.4})
    assert names() == ["m"]
    assert not os.path.lexists(place("m"))
    assert (far / "weights.bin").read_bytes() == b"w" * 100


def test_a_folder_of_models_that_cannot_be_listed_is_told_in_a_sentence(model, monkeypatch):
    def refused():
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folders, "_folders", refused)
    settling.settle()
    with pytest.raises(DecdecError, match="Listing the local models"):
        store.models()
