"""Looking up and removing models; manifests from outside are hostile."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from runtime import store
from runtime.errors import DecdecError
from runtime.store import atomic, folders, records
from runtime.store.leftovers import leftovers

ENTRY = {"bytes": 2, "sha256": "0" * 64}
GOOD = {"format": 1, "record": {"source": "x", "bits_per_weight": 4}, "files": {"config.json": ENTRY}}


def put(home, name="tiny", **changes):
    folder = home / "models" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_bytes(b"{}")
    (folder / "manifest.json").write_text(json.dumps({**GOOD, **changes}))
    return folder


def test_no_home_means_no_models():
    assert store.models() == []


def test_lookup_forgives_case_and_offers_near_names(home):
    put(home, "SmolLM2-135M-Instruct")
    put(home, "owner--name")
    assert store.find("smollm2-135m-instruct").name == "SmolLM2-135M-Instruct"
    assert store.find("owner/name").name == "owner--name"
    with pytest.raises(DecdecError, match=r"no local model 'smolm2'.*Try SmolLM2-135M-Instruct"):
        store.find("smolm2")
    with pytest.raises(DecdecError, match=r"^There is no local model 'zzzzzz'. Get it"):
        store.find("zzzzzz")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"files": {}},
        {"files": {"../../etc/passwd": ENTRY}},
        {"files": {"/etc/passwd": ENTRY}},
        {"files": {"a\\..\\b": ENTRY}},
        {"files": {"c:evil": ENTRY}},
        {"files": {"config.json": {"bytes": -1, "sha256": "0" * 64}}},
        {"files": {"config.json": {"bytes": 2, "sha256": "short"}}},
        {"record": {"source": "x", "bits_per_weight": "many"}},
        {"record": {"source": "x", "bits_per_weight": -0.5}},
        pytest.param({"record": {"source": "x", "bits_per_weight": 10**400}}, id="no float"),
        {"surprise": 1},
    ],
)
def test_hostile_manifests_are_refused_and_not_listed(home, changes):
    folder = put(home)
    assert [m.name for m in store.models()] == ["tiny"]
    put(home, **changes)
    assert store.models() == []
    assert [(left.name, left.state) for left in leftovers()] == [("tiny", "damaged")]
    with pytest.raises(DecdecError, match="damaged"):
        store.find("tiny")
    (folder / "manifest.json").write_bytes(b"\xff{")
    assert store.models() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_a_pipe_as_manifest_is_not_waited_for(home):
    (put(home) / "manifest.json").unlink()
    os.mkfifo(home / "models" / "tiny" / "manifest.json")
    assert store.models() == []
    with pytest.raises(DecdecError, match=r"manifest\.json is damaged: it is no regular file"):
        store.find("tiny")


def linked(home, tmp_path):
    elsewhere = tmp_path / "big disk" / "tiny"
    elsewhere.parent.mkdir()
    put(home).rename(elsewhere)
    (home / "models" / "tiny").symlink_to(elsewhere, target_is_directory=True)
    return elsewhere


def test_of_a_link_to_a_model_only_the_link_goes(home, tmp_path):
    elsewhere = linked(home, tmp_path)
    assert [m.name for m in store.models()] == ["tiny"]
    assert store.remove("tiny") == 0
    assert os.listdir(home / "models") == []
    assert (elsewhere / "config.json").read_bytes() == b"{}"
    assert put(home).is_dir(), "its name is free again"


def test_a_link_is_deleted_even_where_it_leads_nowhere(home, tmp_path):
    elsewhere = linked(home, tmp_path)
    elsewhere.rename(tmp_path / "gone")
    assert records.delete(home / "models" / "tiny") == 0
    assert os.listdir(home / "models") == []


def test_remove_takes_everything_of_a_model_and_nothing_else(home):
    put(home, "tiny")
    put(home, "tiny-2")
    with store.building("tiny") as staging:
        atomic.write_bytes(staging / "extra", b"12345")
    assert store.remove("TINY") >= 7
    assert [m.name for m in store.models()] == ["tiny-2"]
    assert not any(folder.exists() for folder in folders.all_of("tiny"))
    with pytest.raises(DecdecError, match="no local model 'tiny'"):
        store.remove("tiny")


def test_remove_frees_a_half_made_model(home):
    with store.building("half") as staging:
        atomic.write_bytes(staging / "data", b"12345")
    assert store.remove("half") == 5
    assert not folders.staging("half").exists()


def test_listing_loads_no_heavy_library():
    code = (
        "import sys, runtime.store as s, runtime.sources; s.models();"
        "print([m for m in ('torch', 'numpy', 'transformers', 'huggingface_hub') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
