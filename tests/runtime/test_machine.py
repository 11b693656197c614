"""What is known of a machine without torch."""

import subprocess
import sys

import psutil
import pytest

from runtime import device, machine
from runtime.engine.gpu.loading_model import HOST_RESERVE_BYTES


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def nvidia(tmp_path, monkeypatch):
    """A machine whose kernel knows two GPUs."""
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30\n"
    )
    for bus, name in (("0000:01", "NVIDIA GeForce RTX 4050 Laptop GPU"), ("0000:02", "NVIDIA T4")):
        folder = tmp_path / "gpus" / bus
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t {name}\nIRQ:   \t\t 44\n")
    monkeypatch.setattr(machine, "_GPU_FOLDER", tmp_path / "gpus")
    monkeypatch.setattr(machine, "_DRIVER_VERSION", tmp_path / "version")
    monkeypatch.setattr(device, "driver_present", lambda: True)


def test_gpus_are_named_before_torch_is_there(nvidia):
    assert machine.gpus() == [
        {"name": "NVIDIA GeForce RTX 4050 Laptop GPU", "kind": "cuda:0"},
        {"name": "NVIDIA T4", "kind": "cuda:1"},
    ]
    assert machine.driver_version() == "550.144.03"


def test_without_a_driver_the_reason_is_told(monkeypatch):
    monkeypatch.setattr(device, "driver_present", lambda: False)
    assert machine.gpus() == [
        {"name": "NVIDIA GPU", "kind": "cuda", "usable": False, "why": "no NVIDIA driver was found"}
    ]


def test_what_the_kernel_does_not_say_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_DRIVER_VERSION", tmp_path / "nothing")
    monkeypatch.setattr(machine, "_CPU_INFO", tmp_path / "nothing")
    assert machine.driver_version() == ""
    assert machine.cpu()["name"]


def test_memory_leaves_the_reserve_that_loading_leaves(monkeypatch):
    assert machine.RESERVE_BYTES == HOST_RESERVE_BYTES
    found = machine.memory()
    assert found["total_bytes"] == psutil.virtual_memory().total
    assert found["pinnable_bytes"] == max(0, found["available_bytes"] - HOST_RESERVE_BYTES)


def test_the_limit_of_locking_is_that_of_the_system():
    resource = pytest.importorskip("resource")
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert machine.memory()["lock_limit_bytes"] == (None if soft == resource.RLIM_INFINITY else soft)


def test_the_disk_is_that_of_the_models_folder_and_nothing_is_made(home):
    found = machine.disk()
    assert found["folder"] == str(home / "models")
    assert 0 < found["free_bytes"] <= found["total_bytes"]
    assert not home.exists()


def test_a_glance_loads_no_engine():
    code = "import sys; from runtime import machine; machine.glance(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
