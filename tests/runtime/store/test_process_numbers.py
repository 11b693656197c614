"""Numbers of processes as files say them: absurd ones belong to nobody."""

import os

import pytest

from runtime.errors import DecdecError
from runtime.store import atomic
from runtime.store.locks import exclusive

HUGE = 10**30


def test_a_number_too_large_for_the_system_is_nobody_s():
    assert atomic.process_exists(os.getpid())
    assert not atomic.process_exists(HUGE)


def test_what_such_a_process_was_writing_is_swept(tmp_path):
    orphan = tmp_path / f".x.json.{atomic._host()}-{HUGE}-deadbeef.part"
    orphan.write_text("half")
    atomic.sweep(tmp_path)
    assert not orphan.exists()


def test_a_lock_that_such_a_process_signed_is_held_by_nobody_named(home):
    with exclusive("model-z", "Work on z"):
        (home / "locks" / "model-z.pid").write_text(str(HUGE))
        with (
            pytest.raises(DecdecError, match="another decdec-chat holds its lock"),
            exclusive("model-z", "Work on z"),
        ):
            pass
