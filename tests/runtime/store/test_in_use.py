"""A folder that takes no locks is used all the same."""

import pytest

from runtime import locations
from runtime.store import in_use


@pytest.mark.parametrize("refusal", [OSError(30, "Read-only file system"), NotImplementedError("no flock")])
def test_a_folder_in_which_nothing_can_be_locked_is_used(monkeypatch, refusal):
    def refuse(path, timeout=0.0):
        raise refusal

    locations.locks().mkdir(parents=True)
    (locations.locks() / in_use.MOVE).touch()
    monkeypatch.setattr(in_use, "_try", refuse)
    monkeypatch.setattr(in_use, "_place", None)
    in_use.take_part()
    assert in_use._place is None
