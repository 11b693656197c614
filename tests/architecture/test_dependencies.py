"""What is imported is declared, what is declared is imported, and development has one version of each."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("app", "runtime", "kernels", "assets")
# Run, not imported: `python -m pip`; and the wheel that gives Triton to Windows.
NOT_IMPORTED = {"pip", "triton-windows"}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared(extra=None):
    found = project()["dependencies"] if extra is None else project()["optional-dependencies"][extra]
    return [Requirement(line) for line in found]


def pinned():
    """Name to versions, for this platform."""
    lines = (ROOT / "constraints-dev.txt").read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {
        canonicalize_name(each.name): next(iter(each.specifier)).version
        for each in requirements
        if each.marker is None or each.marker.evaluate()
    }


def imported_modules():
    """Top names of all absolute imports, wherever they stand in a file."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    yield node.module.split(".")[0]


@pytest.fixture(scope="module")
def used():
    """Distributions that the program imports."""
    modules = set(imported_modules()) - set(sys.stdlib_module_names) - set(FOLDERS)
    known = packages_distributions()
    return {canonicalize_name(known[module][0]): module for module in modules if module in known}


def test_what_is_imported_is_declared(used):
    names = {canonicalize_name(each.name) for each in declared() + declared("peers")}
    assert {name for name in used if name not in names} == set()


def test_what_is_declared_is_imported(used):
    here = [each for each in declared() if each.marker is None or each.marker.evaluate()]
    names = {canonicalize_name(each.name) for each in here} - NOT_IMPORTED
    assert names - set(used) == set()


def test_development_has_one_version_of_each_within_the_range_for_users():
    versions = pinned()
    for each in declared() + declared("dev"):
        name = canonicalize_name(each.name)
        if name != "pip" and (each.marker is None or each.marker.evaluate()):
            assert each.specifier.contains(versions[name]), each


def test_every_range_for_users_has_a_lower_end_that_was_thought_about():
    assert all(re.search(r">=", str(each.specifier)) for each in declared())


def test_the_readme_s_second_command_takes_these_versions():
    block = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1]
    assert "-c constraints-dev.txt" in block.strip().splitlines()[-1]
