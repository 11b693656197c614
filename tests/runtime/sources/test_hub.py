"""The hub source against a hub on the loopback; in other processes, as the library reads settings once."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("hub_server", Path(__file__).with_name("hub_server.py"))
hub_server = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hub_server)

_CLIENT = """
import json, sys
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import resolve
for repo in sys.argv[1:]:
    events = []
    source = resolve(repo)
    try:
        path = source.fetch(JobContext("x", events.append, lambda: False))
        done = {"path": str(path), "files": sorted(p.name for p in path.iterdir()), "record": source.record}
    except DecdecError as error:
        done = {"error": error.sentence, "code": error.code}
    notes = {e.note: [e.done, e.total] for e in events}
    print(json.dumps({"repo": repo, "name": source.name, "notes": notes, **done}))
"""


@pytest.fixture(scope="module")
def server():
    running = hub_server.start()
    yield running
    running.shutdown()


@pytest.fixture(scope="module")
def client(server, tmp_path_factory):
    home = tmp_path_factory.mktemp("hub")

    def run(*repos, **environment):
        settings = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(home / "hf"),
            "DECDEC_HOME": str(home / "decdec"),
            "NO_PROXY": "127.0.0.1",
            "HF_TOKEN": "hf_secret",
        }
        env = {**os.environ, **settings, **environment}
        env.pop("HF_HUB_OFFLINE", None) if "HF_HUB_OFFLINE" not in environment else None
        done = subprocess.run(
            [sys.executable, "-c", _CLIENT, *repos], env=env, capture_output=True, text=True, check=True
        )
        return {line["repo"]: line for line in map(json.loads, done.stdout.splitlines())}

    return run


@pytest.fixture(scope="module")
def online(client):
    return client(*hub_server.REPOS, *hub_server.ERRORS, "owner/html")


def test_only_safetensors_json_and_templates_are_fetched(online, server):
    good = online["owner/good"]
    assert good["files"] == ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]
    assert (Path(good["path"]) / "model.safetensors").read_bytes() == hub_server.WEIGHTS
    assert good["name"] == "owner--good"
    assert good["record"] == {
        "kind": "hub",
        "source": "hub owner/good",
        "repo": "owner/good",
        "commit": hub_server.COMMIT,
    }
    asked = [(path, auth) for path, _, auth in server.requests if "owner/good" in path]
    assert len(asked) == 1 + len(good["files"])
    assert {auth for _, auth in asked} == {"Bearer hf_secret"}


def test_progress_counts_the_bytes_of_all_files(online):
    notes = online["owner/good"]["notes"]
    done = [pair[0] for pair in notes.values()]
    total = len(hub_server.WEIGHTS) + len(hub_server.CONFIG) + len(b"{}") + len(b"{{ x }}")
    assert notes["tokenizer.json"] == [total, total]
    assert done == sorted(done)
    assert {pair[1] for pair in notes.values()} == {total}


def test_a_cut_connection_is_continued_where_it_broke(online, server):
    assert (Path(online["owner/cut"]["path"]) / "model.safetensors").read_bytes() == hub_server.WEIGHTS
    ranges = [
        r
        for path, r, _ in server.requests
        if path.startswith("/owner/cut/") and path.endswith("model.safetensors")
    ]
    assert ranges[0] == "bytes=0-"
    assert int(ranges[1].removeprefix("bytes=").removesuffix("-")) > 100_000


@pytest.mark.parametrize(
    ("repo", "words"),
    [
        ("corrupt", ["model.safetensors arrived damaged"]),
        ("pickle", ["pickle files, which can run code"]),
        ("gguf", ["GGUF", "give its path"]),
        ("bare", ["no config.json"]),
        ("pointer", ["git-lfs pointer"]),
        ("shards", ["gone.safetensors is missing"]),
        ("gated", ["gated", "/owner/gated and set HF_TOKEN"]),
        ("missing", ["was not found on http://127.0.0.1"]),
        ("broken", ["cannot be reached"]),
        ("secret", ["HF_TOKEN"]),
        ("html", ["could not be understood"]),
    ],
)
def test_every_failure_is_one_sentence(online, repo, words):
    outcome = online[f"owner/{repo}"]
    assert outcome["code"] == 1
    assert all(word in outcome["error"] for word in words), outcome["error"]
    assert "\n" not in outcome["error"]


def test_what_was_fetched_is_not_fetched_again(online, client, server):
    asked = len(server.requests)
    assert client("owner/good")["owner/good"]["path"] == online["owner/good"]["path"]
    of_it = [path.partition("?")[0] for path, _, _ in server.requests[asked:] if "owner/good" in path]
    assert of_it == ["/api/models/owner/good"]


def test_the_token_is_written_nowhere(online):
    home = Path(online["owner/good"]["path"]).parents[2]
    assert "hf_secret" not in json.dumps(online)
    assert not [path for path in home.rglob("*") if path.is_file() and b"hf_secret" in path.read_bytes()]


def test_offline_what_is_here_works_and_what_is_not_says_so(online, client, server):
    asked = len(server.requests)
    outcome = client("owner/good", "owner/corrupt", HF_HUB_OFFLINE="1")
    assert outcome["owner/good"]["path"] == online["owner/good"]["path"]
    assert outcome["owner/good"]["record"]["commit"] == hub_server.COMMIT
    assert "HF_HUB_OFFLINE is set" in outcome["owner/corrupt"]["error"]
    assert len(server.requests) == asked


def test_no_network_uses_the_hub_librarys_own_cache(client, tmp_path):
    snapshot = tmp_path / "hf/hub/models--owner--cached/snapshots" / hub_server.COMMIT
    snapshot.mkdir(parents=True)
    (tmp_path / "hf/hub/models--owner--cached/refs").mkdir()
    (tmp_path / "hf/hub/models--owner--cached/refs/main").write_text(hub_server.COMMIT)
    for name in ("config.json", "model.safetensors"):
        (snapshot / name).write_bytes(hub_server.USUAL[name])
    outcome = client(
        "owner/cached", "owner/absent", HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path / "hf")
    )
    assert outcome["owner/cached"]["path"] == str(snapshot)
    assert "cannot be reached" in outcome["owner/absent"]["error"]
    assert "works offline" not in outcome["owner/absent"]["error"].split(".")[0]
