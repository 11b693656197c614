"""The wheel that comes out of the sdist holds the program, and nothing else."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("app", "runtime", "kernels", "assets")
FILES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}


def build(folder, kind, out):
    """One hook of the build backend in a process of its own, as pip calls it."""
    code = f"from setuptools import build_meta as b; print('\\n' + b.build_{kind}({str(out)!r}))"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return out / run.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The sdist, and the wheel built from what it unpacks to."""
    folder = tmp_path_factory.mktemp("build")
    for name in (*FOLDERS, "tests"):
        shutil.copytree(ROOT / name, folder / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / "tree")
    sdist = build(folder / "tree", "sdist", folder)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
        names = [name.partition("/")[2] for name in archive.getnames()]
    [unpacked] = (folder / "unpacked").iterdir()
    with zipfile.ZipFile(build(unpacked, "wheel", folder)) as wheel:
        return names, wheel.namelist()


def program():
    """Every file of the program as it lies here."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_program_and_its_metadata_and_nothing_else(archives):
    metadata = {name for name in archives[1] if name.split("/")[0].endswith(".dist-info")}
    assert set(archives[1]) - metadata == program()
    assert {name.partition("/")[2] for name in metadata} == METADATA


def test_the_sdist_carries_no_half_of_the_tests(archives):
    assert not [name for name in archives[0] if name.startswith(("tests", "docs"))]
