"""The hub source against a hub on the loopback; in other processes, as the library reads settings once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.sources import hub_server
from tests.runtime.sources.hub_server import listed, resolved

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
    progress = [[e.done, e.total] for e in events if e.step == "download"]
    print(json.dumps({"repo": repo, "name": source.name, "progress": progress, **done}))
"""


@pytest.fixture(scope="module")
def server():
    running = hub_server.Hub()
    yield running
    running.end()


@pytest.fixture(scope="module")
def client(server, tmp_path_factory):
    home = tmp_path_factory.mktemp("hub")

    def run(*repos, **environment):
        settings = {
            "HF_ENDPOINT": server.url(),
            "HF_HOME": str(home / "hf"),
            "DECDEC_HOME": str(home / "decdec"),
            "NO_PROXY": "127.0.0.1,127.0.0.2",
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
    return client(*hub_server.REPOS, *hub_server.ERRORS)


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
    asked = [(path, headers) for path, headers in server.requests if "owner/good" in path]
    assert len(asked) == 1 + len(good["files"])
    assert {headers["Authorization"] for _, headers in asked} == {"Bearer hf_secret"}


def test_the_host_of_large_files_never_hears_who_asks(online, server):
    asked = server.cdn.asked(resolved("owner/good", "model.safetensors"))
    assert len(asked) == 1
    assert all("hf_secret" not in json.dumps(headers) for _, headers in server.cdn.requests)
    assert not any("Authorization" in headers for _, headers in server.cdn.requests)


def test_one_progress_counts_the_bytes_of_all_files(online):
    good = online["owner/good"]
    total = len(hub_server.WEIGHTS) + len(hub_server.CONFIG) + len(b"{}") + len(b"{{ x }}")
    assert good["progress"] == sorted(good["progress"])
    assert good["progress"][-1] == [total, total]
    assert {pair[1] for pair in good["progress"]} == {total}


def test_a_cut_connection_is_continued_where_it_broke(online, server):
    assert (Path(online["owner/cut"]["path"]) / "model.safetensors").read_bytes() == hub_server.WEIGHTS
    asked = server.cdn.asked(resolved("owner/cut", "model.safetensors"))
    assert [headers.get("Range") for headers in asked] == [None, "bytes=350000-"]


def test_a_busy_hub_is_asked_again_and_names_that_climb_are_never_asked_for(online, server):
    for repo in ("busy", "climbing"):
        assert online[f"owner/{repo}"]["files"] == ["config.json", "model.safetensors"]
    assert len(server.asked(listed("owner/busy"))) == 2
    assert not [path for path, _ in server.requests if "escape" in path or "nul" in path or "aaa" in path]


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
        ("broken", ["Asking for owner/broken failed: the answer is 500"]),
        ("secret", ["HF_TOKEN"]),
        ("html", ["a login page or proxy answered instead of http://127.0.0.1"]),
        ("nonsense", ["could not be understood"]),
        ("packed", ["packed (gzip), which was not asked for"]),
        ("endless", ["sent more than"]),
        ("negative", ["could not be understood", "-1 is no size"]),
        ("absurd", ["could not be understood", "is no size"]),
        ("twice", ["model.safetensors is listed twice"]),
        ("clash", ["Config.json and config.json are one file where case does not count"]),
        ("device", ["name of a device"]),
        ("loop", ["more than 8 in a row"]),
        ("othersize", ["the hub contradicts itself", "size 7"]),
        ("otherhash", ["the hub contradicts itself", "hash"]),
        ("othercommit", ["the hub contradicts itself", "commit"]),
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
    assert [path for path, _ in server.requests[asked:]] == [listed("owner/good")]


def test_what_a_newer_commit_has_unchanged_is_not_fetched_again(online, client, server):
    newer = {**hub_server.SMALL, "config.json": b'{"model_type": "qwen2"}'}
    server.add("owner/newer", newer, "d" * 40)
    asked = len(server.requests)
    path = Path(client("owner/newer")["owner/newer"]["path"])
    assert path.name == "d" * 40
    assert {file.name: file.read_bytes() for file in path.iterdir()} == newer
    new = [path for path, _ in server.requests[asked:]]
    assert new == [listed("owner/newer"), resolved("owner/newer", "config.json", "d" * 40)]
    assert (Path(online["owner/newer"]["path"]) / "model.safetensors").exists()


def test_the_token_is_written_nowhere(online):
    home = Path(online["owner/good"]["path"]).parents[2]
    assert "hf_secret" not in json.dumps(online)
    assert not [path for path in home.rglob("*") if path.is_file() and b"hf_secret" in path.read_bytes()]


def test_a_password_in_the_address_of_the_hub_is_used_and_never_shown(client, server):
    endpoint = server.url().replace("//", "//me:hf_secret@")
    outcome = client("owner/pickle", "owner/missing", HF_ENDPOINT=endpoint, HF_TOKEN="")
    assert server.requests[-1][1]["Authorization"] == "Basic bWU6aGZfc2VjcmV0"
    assert "was not found on http://127.0.0.1" in outcome["owner/missing"]["error"]
    assert "hf_secret" not in json.dumps(outcome)


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
