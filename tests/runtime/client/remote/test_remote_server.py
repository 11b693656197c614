"""Addresses and keys as people give them."""

import pytest

from runtime.client.remote import Server
from runtime.errors import DecdecError


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/models", "http://localhost:8000/v1"),
        ("https://host/api/v1", "https://host/api/v1"),
        ("https://host/openai", "https://host/openai"),
        (" HTTP://Host:1 ", "http://Host:1/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
        ("localhost:11434", "http://localhost:11434/v1"),
        ("192.168.1.5:8000", "http://192.168.1.5:8000/v1"),
        ("box.local:8000", "http://box.local:8000/v1"),
        ("api.example.com", "https://api.example.com/v1"),
    ],
)
def test_addresses(typed, url):
    assert Server.of(typed).url == url


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "no http or https"),
        ("ftp://host", "no http or https"),
        ("http://", "no http or https"),
        ("http://host:99999", "no http or https"),
        ("http://host:0", "no http or https"),
        ("http://[::1", "no http or https"),
        ("http://a b", "no http or https"),
        ("http://h\x1b[31mst", "no http or https"),
        ("http://user:secret@host", "password"),
        ("http://host/v1?key=secret", "nothing may follow"),
        ("http://host/#x", "nothing may follow"),
    ],
)
def test_what_is_no_address_is_wrong_usage_and_not_repeated(typed, why):
    with pytest.raises(DecdecError, match=why) as refused:
        Server.of(typed)
    assert refused.value.code == 2
    assert "secret" not in refused.value.sentence


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.2", True),
        ("http://[::1]:1", True),
        ("http://x.localhost", True),
        ("http://192.168.0.1", False),
        ("http://localhost.example.com", False),
    ],
)
def test_what_is_this_machine(url, local):
    assert Server.of(url).local is local


def test_a_key_comes_from_the_environment_and_shows_nowhere(monkeypatch):
    monkeypatch.setenv("SOME_KEY", " sk-abc \n")
    server = Server.of("http://gpu-box:8000", "SOME_KEY")
    assert server.key == "sk-abc"
    assert "sk-abc" not in repr(server)
    assert server.quoted("bad key sk-abc!") == "bad key [key]!"
    assert server.quoted("x" * 298 + "sk-abc!") == "x" * 298 + "[k…"
    assert server.exposes_key
    assert not Server.of("https://gpu-box", "SOME_KEY").exposes_key
    assert not Server.of("http://localhost", "SOME_KEY").exposes_key
    assert not Server.of("http://gpu-box").exposes_key
    assert Server.of("http://gpu-box").quoted("a") == "a"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("UNSET_KEY", None, "UNSET_KEY is not set"),
        ("EMPTY_KEY", "  ", "EMPTY_KEY is not set"),
        ("ODD_KEY", "two words", "ODD_KEY holds something else"),
        ("ODD_KEY", "schlüssel", "ODD_KEY holds something else"),
        ("sk-abc123", None, "no name of a variable"),
    ],
)
def test_keys_that_cannot_be_sent(monkeypatch, name, value, sentence):
    monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv(name, value)
    with pytest.raises(DecdecError, match=sentence) as refused:
        Server.of("http://host", name)
    for secret in ("sk-abc123", "two words", "schlüssel"):
        assert secret not in refused.value.sentence
