"""A search of a hub on the loopback; in other processes, as the hub's library reads its settings once."""

import json
import os
import subprocess
import sys

import msgspec
import pytest

from runtime.sources.hub_search import weight_bytes
from tests.fakes import search_hub

_CLIENT = """
import json, sys
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources.hub_search import search
try:
    print(json.dumps(search({"words": sys.argv[1]}, JobContext.silent())))
except DecdecError as error:
    print(json.dumps({"error": error.sentence, "torch": "torch" in sys.modules}))
"""

MULTIPLIED = search_hub.entry("a/qwen", parameters={"I250": "xxxx"})


@pytest.fixture(scope="module")
def server():
    running = search_hub.start()
    yield running
    running.shutdown()


@pytest.fixture
def search(server, tmp_path):
    def run(words, answer=None, **environment):
        server.handler.answer = answer
        env = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
        env |= {
            "HF_ENDPOINT": server.endpoint,
            "HF_HOME": str(tmp_path),
            "NO_PROXY": "127.0.0.1",
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-c", _CLIENT, words], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return run


def test_what_this_program_can_use_with_its_facts(search, server):
    found = search("qwen")
    assert found["models"] == [
        {
            "repo": "Qwen/Qwen3-0.6B",
            "downloads": 5_000_000,
            "bytes": 1_200_000_000,
            "gated": False,
            "licence": "apache-2.0",
        },
        {"repo": "owner/mixed-qwen2", "downloads": 10, "bytes": 12, "gated": False, "licence": "apache-2.0"},
        {"repo": "bare/qwen-mirror", "downloads": 0, "bytes": 0, "gated": False, "licence": ""},
    ]
    assert found["left_out"] == 6, "another family, awq, a config that says so, an adapter, pictures, a path"
    query = server.handler.queries[-1]
    assert (query["search"], query["pipeline_tag"], query["filter"]) == (
        ["qwen"],
        ["text-generation"],
        ["safetensors"],
    )


def test_gated_is_told(search):
    assert [(m["repo"], m["gated"], m["bytes"]) for m in search("gated")["models"]] == [
        ("meta/Llama-gated", True, 24)
    ]


@pytest.mark.parametrize(
    ("environment", "answer", "words"),
    [
        ({"HF_HUB_OFFLINE": "1"}, None, ["HF_HUB_OFFLINE is set", "work offline"]),
        (
            {"HF_ENDPOINT": "http://127.0.0.1:9"},
            None,
            ["http://127.0.0.1:9 cannot be reached", "work offline"],
        ),
        ({}, 503, ["The search failed", "503"]),
        ({}, 401, ["The search failed", "401", "HF_TOKEN"]),
        ({}, b"<html>log in</html>", ["could not be understood", "HF_ENDPOINT"]),
        ({}, b'{"error": "no"}', ["could not be understood"]),
        ({}, b'[{"id": "a/b", "config": []}, 3]', ["could not be understood"]),
        ({}, json.dumps([MULTIPLIED]).encode(), ["could not be understood"]),
        ({}, b"[" + b" " * (2 << 20) + b"]", ["The search failed", "sent more than 2097152 bytes"]),
    ],
    ids=["offline", "unreachable", "broken", "refused", "html", "no list", "no models", "texts", "endless"],
)
def test_every_failure_is_one_sentence(search, environment, answer, words):
    failed = search("qwen", answer, **environment)
    assert all(word in failed["error"] for word in words), failed["error"]
    assert not failed["torch"], "somebody waits for it"


def test_nothing_to_search(search, server):
    asked = len(server.handler.queries)
    assert "nothing to search" in search("  ")["error"]
    assert len(server.handler.queries) == asked


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"BF16": 3, "F32": 2}, 14),
        ({"F8_E4M3": 5}, 5),
        ({"I64": 1, "U8": 1}, 9),
        ({"odd": 7}, 0),
        ({"I1000": 7}, 0),
        ({"I" + "9" * 10_000: 7}, 0),
        ({}, 0),
    ],
)
def test_bytes_by_type(parameters, expected):
    assert weight_bytes(parameters) == expected


@pytest.mark.parametrize("count", ["xxxx", [0], 1.5, None, True])
def test_a_count_that_is_none_is_not_multiplied(count):
    with pytest.raises(msgspec.ValidationError):
        weight_bytes({"I250": count})
