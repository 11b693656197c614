"""Host memory: views, files, and what is asked of the driver; on a GPU that kernels can read it."""

# The fake answers to the driver's names.
# ruff: noqa: N802

from __future__ import annotations

import gc

import pytest
import torch

from kernels.gpu import host_memory
from kernels.gpu.host_memory import PinError, allocate, map_file, pinnable_bytes

CUDA = torch.cuda.is_available()


class FakeDriver:
    """Page-locks up to `room` bytes."""

    def __init__(self, room):
        self.room, self.locked = room, {}

    def cudaHostRegister(self, address, size, flags):
        assert flags & 2
        if size > self.room - sum(self.locked.values()):
            return 2
        self.locked[address] = size
        return 0

    def cudaHostUnregister(self, address):
        del self.locked[address]
        return 0

    def cudaGetErrorString(self, status):
        return {2: "out of memory"}[status]


@pytest.fixture
def driver(monkeypatch):
    fake = FakeDriver(10_000_000)
    monkeypatch.setattr(host_memory, "_cudart", lambda: fake)
    monkeypatch.setattr(host_memory, "_forget_error", lambda: None)
    return fake


def test_views_share_the_memory_and_keep_it_alive():
    memory = allocate(100, pin=False)
    words = memory.tensor((2, 3), torch.int32, offset=4)
    assert not words.any()
    words[1, 2] = -7
    assert memory.tensor((25,), torch.int32)[6] == -7
    memory.close()
    del memory
    gc.collect()
    assert words[1, 2] == -7


@pytest.mark.parametrize(
    ("shape", "dtype", "offset"), [((26,), torch.int32, 0), ((1,), torch.int16, 3), ((1,), torch.int8, -1)]
)
def test_views_that_do_not_fit_are_refused(shape, dtype, offset):
    with pytest.raises(ValueError, match="not within 100 bytes"):
        allocate(100, pin=False).tensor(shape, dtype, offset)


def test_a_file_is_read_as_it_is_and_never_written(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(bytes(range(200)))
    with map_file(path, pin=False) as memory:
        octets = memory.tensor((200,), torch.uint8)
        assert octets.tolist() == list(range(200))
        octets.zero_()
    assert path.read_bytes() == bytes(range(200))


def test_no_memory_no_file_and_an_empty_file(tmp_path):
    with pytest.raises(ValueError, match="0 bytes"):
        allocate(0)
    with pytest.raises(FileNotFoundError):
        map_file(tmp_path / "missing")
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="empty"):
        map_file(tmp_path / "empty")


def test_pages_are_locked_until_closed_once(driver):
    memory = allocate(5000, pin=True)
    assert list(driver.locked.values()) == [5000]
    memory.close()
    memory.close()
    assert not driver.locked
    assert not memory.pinned


def test_what_is_dropped_is_unlocked(driver):
    memory = allocate(5000, pin=True)
    del memory
    gc.collect()
    assert not driver.locked


def test_a_refusal_says_how_much_and_why(driver):
    with pytest.raises(PinError, match=r"0\.02 GiB .* out of memory"):
        allocate(20_000_000, pin=True)
    assert not driver.locked


def test_the_probe_finds_the_driver_s_limit_and_keeps_nothing(driver):
    assert pinnable_bytes(100_000_000, step=3_000_000) == 9_000_000
    assert pinnable_bytes(7_000_000, step=3_000_000) == 6_000_000
    assert pinnable_bytes(1_000, step=3_000_000) == 0
    assert not driver.locked


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_kernels_read_files_and_memory_and_a_refusal_does_no_harm(tmp_path):
    from kernels.gpu.primitives import launch
    from tests.kernels.gpu.test_primitives import _copy

    wanted = torch.arange(256, dtype=torch.int32) * 3
    path = tmp_path / "rows"
    path.write_bytes(wanted.numpy().tobytes())
    for memory in (map_file(path), allocate(1024)):
        assert memory.pinned
        words = memory.tensor((256,), torch.int32)
        words.copy_(wanted)
        out = torch.zeros(256, dtype=torch.int32, device="cuda")
        launch(_copy, (1,), words, out, num_warps=2)
        expected = torch.zeros(256, dtype=torch.int32, device="cuda")
        launch(_copy, (1,), wanted.cuda(), expected, num_warps=2)
        assert torch.equal(out, expected)
        with pytest.raises(PinError):
            host_memory._register(words.view(torch.uint8))
        assert torch.ones(3, device="cuda").sum() == 3
        memory.close()
