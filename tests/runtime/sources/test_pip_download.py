"""pip as the one that fetches a wheel: it is ended where a wheel does not."""

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import index_pip, pip_download
from runtime.sources.index_pip import Ended

RECORDED = 10_000_000
SLACK = RECORDED // 10 + (1 << 20)


@pytest.fixture
def pip_fetches(monkeypatch, tmp_path):
    """Makes pip's temporary file that long, then its wheel."""

    def fetches(size):
        def run(arguments, temporary, enough):
            for path in (temporary / "pip-unpack-x" / "t.whl", tmp_path / "out" / "t.whl"):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    file.truncate(size)
                assert not enough("")
            return Ended(0, "")

        monkeypatch.setattr(index_pip, "run", run)

    return fetches


@pytest.mark.parametrize("size", [RECORDED - 1, RECORDED, RECORDED + SLACK])
def test_a_wheel_about_as_long_as_recorded_is_taken(pip_fetches, tmp_path, size):
    pip_fetches(size)
    events = []
    ctx = JobContext("prepare", events.append, lambda: False)
    assert pip_download.download("t==1", RECORDED, tmp_path, 0, ctx) == tmp_path / "out" / "t.whl"
    assert {(event.done, event.total) for event in events} == {(RECORDED - 1, RECORDED)}


@pytest.mark.parametrize("size", [RECORDED + SLACK + 1, RECORDED * 100])
def test_a_wheel_without_end_ends_pip(pip_fetches, tmp_path, size):
    pip_fetches(size)
    with pytest.raises(
        DecdecError, match=r"t==1 with pip was ended: .* more than the recorded 10000000 bytes"
    ):
        pip_download.download("t==1", RECORDED, tmp_path, 0, JobContext.silent())
    assert not (tmp_path / "out").exists()
