"""The compiled kernels' folder follows their sources."""

from runtime.worker import environment


def test_the_kernel_folder_changes_with_any_kernel_source(tmp_path, monkeypatch):
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("ONE = 1")
    monkeypatch.setattr(
        environment.importlib.util,
        "find_spec",
        lambda name: type("S", (), {"submodule_search_locations": [str(package)]}),
    )
    first = environment.kernel_cache()
    assert environment.kernel_cache() == first
    (package / "deep.py").write_text("ONE = 2")
    assert environment.kernel_cache() != first


def test_only_the_present_kernels_are_kept(tmp_path):
    for name in ("old", "present"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index").write_text("x")
    environment.forget_old_kernels(tmp_path / "present")
    assert [path.name for path in tmp_path.iterdir()] == ["present"]
    assert (tmp_path / "present" / "index").exists()
    environment.forget_old_kernels(tmp_path / "absent" / "present")


def test_what_the_user_set_stays(monkeypatch, tmp_path):
    chosen = {"OMP_NUM_THREADS": "7", "NUMBA_CACHE_DIR": "/elsewhere", "DECDEC_HOME": str(tmp_path)}
    monkeypatch.setattr(environment.os, "environ", dict(chosen))
    environment.prepare()
    assert chosen.items() <= environment.os.environ.items()
    assert int(environment.os.environ["GOMP_SPINCOUNT"]) > 0
