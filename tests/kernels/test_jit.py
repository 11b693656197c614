"""Compiled kernels are kept on disk, and a disk that keeps nothing only costs time."""

import importlib.util
import tempfile

import numba
import pytest

from kernels.jit import njit

SUM = "def total(n):\n    found = 1\n    for i in range(n + 1):\n        found += i\n    return found\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Compile and call a kernel as a new process would; how often the cache had it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "sums.py").write_text(SUM)
    spec = importlib.util.spec_from_file_location("sums", tmp_path / "sums.py")

    def go():
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = njit(module.total)
        assert kernel(4) == 11
        return sum(kernel.stats.cache_hits.values())

    return go


@pytest.mark.parametrize("damage", [b"", b"0.0\x80", b"\x80\x04garbage"])
def test_a_damaged_cache_is_made_again_and_a_whole_one_used(run, tmp_path, damage):
    assert run() == 0
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(damage)
    assert run() == 0
    assert run() == 1


def test_a_disk_that_takes_no_byte_costs_only_time(run, tmp_path):
    resource = pytest.importorskip("resource", reason="this system has no limits of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        assert run() == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.rglob("*.nbi"))
    assert (run(), run()) == (0, 1)


def test_without_any_folder_for_it_there_is_no_cache(run, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert (run(), run()) == (0, 0)
