"""What deleting frees, byte by byte, and what it leaves alone."""

import pytest

from app.library import removal
from app.library.pulls import Pull
from app.library.rows import LeftoverRow, ReadyRow, Shelf, View, sections
from runtime import store
from runtime.errors import DecdecError
from runtime.sources import resolve
from runtime.store.locks import exclusive
from tests.app.conftest import MODEL


@pytest.fixture
def row():
    """The default model, 100 bytes, with a download of 40."""
    source = resolve(MODEL)
    source._folder.mkdir(parents=True)
    (source._folder / "x.gguf").write_bytes(b"x" * 40)
    with store.building(MODEL) as staging:
        (staging / "w").write_bytes(b"x" * 100)
        store.publish(MODEL, staging, {**source.record, "bits_per_weight": 5})
    return ReadyRow(store.find(MODEL), False, False)


def test_a_model_alone(row):
    assert removal.sizes(row) == removal.Sizes(100, 40)
    freed = removal.remove(row, False)
    assert freed >= 100, "its manifest counts too"
    assert store.models() == []
    assert resolve(MODEL)._folder.is_dir()


def test_a_model_with_its_download(row):
    assert removal.remove(row, True) >= 140
    assert not resolve(MODEL)._folder.exists()


def test_a_model_that_is_gone_says_so(row):
    removal.remove(row, False)
    with pytest.raises(DecdecError, match="no local model"):
        removal.remove(row, False)


def test_a_leftover(home):
    with store.building("bad", {"source": {"kind": "hub", "repo": "o/bad"}}) as staging:
        (staging / "part").write_bytes(b"x" * 70)
    (left,) = [row for s in sections(Shelf.read(()), (), View()) for row in s.rows]
    assert isinstance(left, LeftoverRow)
    assert removal.sizes(left).model >= 70
    assert removal.remove(left, True) == removal.sizes(left).model
    assert Shelf.read(()).leftovers == ()


def test_a_pull_that_is_cancelled_leaves_nothing_of_its_own(tmp_path):
    pull = Pull("owner--m", "owner/m")
    assert removal.bytes_of_pull(pull) == removal.discard(pull) == 0
    folder = resolve("owner/m")._folder
    folder.mkdir(parents=True)
    (folder / "model.safetensors.partial").write_bytes(b"x" * 30)
    with store.building("owner--m") as staging:
        (staging / "part").write_bytes(b"x" * 5)
    assert removal.bytes_of_pull(pull) == 35
    assert removal.discard(pull) == 35
    assert not folder.exists()


@pytest.mark.parametrize("what", ["download", "half-made"])
def test_a_pull_that_another_instance_works_on_is_left_alone(what):
    folder = resolve("owner/m")._folder
    folder.mkdir(parents=True)
    (folder / "model.safetensors.partial").write_bytes(b"x" * 30)
    with store.building("owner--m") as staging:
        (staging / "part").write_bytes(b"x" * 5)
    pull, lock = (
        Pull("owner--m", "owner/m"),
        {"download": f"download-{folder.name}"}.get(what, "model-owner--m"),
    )
    with exclusive(lock, "Work"), pytest.raises(DecdecError, match=r"already going on.*holds its lock"):
        removal.discard(pull)
    assert removal.bytes_of_pull(pull) == 35
    assert removal.discard(pull) == 35


def test_a_model_whose_download_another_instance_works_on_is_left_alone(row):
    with (
        exclusive(f"download-{resolve(MODEL)._folder.name}", "Work"),
        pytest.raises(DecdecError, match="already going on"),
    ):
        removal.remove(row, True)
    assert removal.sizes(row) == removal.Sizes(100, 40)
    assert store.find(MODEL)


def test_a_users_own_file_is_never_deleted(tmp_path):
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    assert removal.discard(Pull("mine", str(file))) == 0
    assert file.exists()
    file.unlink()
    assert removal.discard(Pull("mine", str(file))) == 0, "its source may be gone"
