"""The folders are the architecture: contracts held by import-linter, and sizes a reader can take in."""

import ast
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "runtime", "kernels", "assets")
MAX_FILE_LINES, MAX_FUNCTION_LINES = 250, 60


def sources():
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def functions(path):
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_app_runtime_kernels_never_backwards():
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_files_and_functions_stay_small():
    files = [f"{p.name}: {n}" for p in sources() if (n := len(p.read_text().splitlines())) > MAX_FILE_LINES]
    long = [
        f"{path.name}:{f.name}"
        for path in sources()
        for f in functions(path)
        if (f.end_lineno or 0) - f.lineno >= MAX_FUNCTION_LINES
    ]
    assert (files, long) == ([], [])


def test_every_signature_is_typed():
    untyped = [
        f"{path.relative_to(ROOT)}:{f.lineno} {f.name}"
        for path in sources()
        for f in functions(path)
        if f.returns is None
    ]
    assert untyped == []
