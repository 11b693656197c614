"""Where redirects may lead, and what is told there."""

from __future__ import annotations

import json

import pytest

from runtime.download.redirects import MAX_REDIRECTS, next_url, same_origin
from runtime.errors import DecdecError
from tests.runtime.download.conftest import CONTENT, PATH
from tests.runtime.download.lying_server import Play

SECRET = {"Authorization": "Bearer hf_secret", "X-Private": "hf_secret"}


def moved(location, status=302):
    return Play(status, {"Location": location, "Set-Cookie": "session=hf_secret; Path=/"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_another_host_never_hears_who_asks(client, server, other, status):
    server.always[PATH] = moved(other.url(PATH), status)
    other.plays[PATH] = [Play(cut=10_000)]
    assert client.get(headers=SECRET) == CONTENT
    assert all(asked["Authorization"] == "Bearer hf_secret" for asked in server.asked(PATH))
    assert [asked.get("Range") for asked in other.asked(PATH)] == [None, "bytes=10000-"]
    assert "If-Range" in other.asked(PATH)[1]
    assert "hf_secret" not in json.dumps(other.requests)


def test_what_is_left_behind_is_not_taken_up_again_on_the_way_back(client, server, other):
    server.always[PATH] = moved(other.url("/hop"))
    other.always["/hop"] = moved(server.url("/back"))
    server.files["/back"] = CONTENT
    assert client.get(headers=SECRET) == CONTENT
    assert "Authorization" not in server.asked("/back")[0]
    assert "Cookie" not in server.asked("/back")[0]


def test_a_way_within_the_host_keeps_the_headers(client, server):
    server.always[PATH] = moved("../renamed?a=b#part")
    server.files["/renamed?a=b"] = CONTENT
    assert client.get(headers=SECRET) == CONTENT
    assert server.asked("/renamed?a=b")[0]["Authorization"] == "Bearer hf_secret"


def test_a_password_in_the_address_is_a_header_of_its_own_host(client, server, other, monkeypatch):
    server.always[PATH] = moved(other.url(PATH))
    monkeypatch.setattr(server, "url", lambda path: f"http://me:p%40ss@127.0.0.1:{server.server_port}{path}")
    assert client.get() == CONTENT
    assert server.asked(PATH)[0]["Authorization"] == "Basic bWU6cEBzcw=="
    assert "Authorization" not in other.asked(PATH)[0]


@pytest.mark.parametrize(
    ("location", "words"),
    [
        (PATH, f"more than {MAX_REDIRECTS} in a row"),
        ("file:///etc/passwd", "file is not http or https"),
        ("ftp://127.0.0.1/x", "ftp is not http"),
        ("http://me:secret@127.0.0.1/x", "holds a password"),
        ("http://[::1", "no valid address"),
        ("http://127.0.0.1:99999/", "no valid address"),
        ("https:///nowhere", "no valid address"),
        ("", "no valid address"),
    ],
)
def test_redirects_that_are_not_followed(client, server, location, words):
    server.always[PATH] = moved(location)
    with pytest.raises(DecdecError, match=words) as caught:
        client.get(headers=SECRET)
    assert "secret" not in caught.value.sentence
    assert len(server.requests) <= MAX_REDIRECTS + 1


def test_https_is_never_left_for_http():
    with pytest.raises(DecdecError, match="leads from https to http at cdn"):
        next_url("https://hub/x", "http://cdn/x", "It")
    with pytest.raises(DecdecError, match="from https to http"):
        next_url("https://hub/x", "http://127.0.0.1/x", "It")
    assert next_url("https://localhost/x", "http://127.0.0.1/x", "It") == "http://127.0.0.1/x"
    assert next_url("http://hub/x", "https://hub/x", "It") == "https://hub/x"
    assert next_url("https://hub/a/b", "//cdn/x", "It") == "https://cdn/x"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://hub/y", True),
        ("https://HUB:443/y", True),
        ("http://hub/y", False),
        ("https://hub:444/y", False),
        ("https://hub.evil/y", False),
        ("https://evil/hub", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(other, same):
    assert same_origin("https://hub/x", other) is same
