"""Small documents come whole or not at all."""

from __future__ import annotations

import pytest

from runtime.download import Address, Limits, StatusError, UnreachableError, read_document
from runtime.errors import DecdecError, Interrupted
from tests.runtime.download.conftest import quick_client
from tests.runtime.download.lying_server import Play

HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.fixture
def read(server):
    server.files["/list"] = b"[1]"
    waits = []

    async def wait(seconds):
        waits.append(seconds)

    def run(tick=lambda: None, headers=None, **options):
        address = Address(server.url("/list"), headers or {})
        return read_document(address, "Asking", tick, client=quick_client, wait=wait, **options)

    run.waits = waits
    return run


def test_a_document_with_its_headers_and_where_it_came_from(read, server, other):
    server.always["/list"] = Play(307, {"Location": other.url("/moved")})
    other.always["/moved"] = Play(200, {"X-Told": "yes"}, b"[2]")
    document = read(headers={"Authorization": "Bearer hf_secret"})
    assert (document.body, document.headers["x-told"], document.url) == (b"[2]", "yes", other.url("/moved"))
    assert "Authorization" not in other.asked("/moved")[0]


def test_a_busy_server_is_asked_again_and_another_failure_is_told_at_once(read, server):
    server.plays["/list"] = [Play(429, {"Retry-After": "5"}), Play(503)]
    assert read().body == b"[1]"
    assert read.waits[0] == 5
    for play in (Play(500), Play(cut=1), Play(reset=True, cut=0)):
        server.requests.clear()
        server.plays["/list"] = [play]
        with pytest.raises(UnreachableError):
            read()
        assert len(server.requests) == 1


def test_a_server_that_stays_busy_is_given_up(read, server):
    server.always["/list"] = Play(429, {"Retry-After": "9999"})
    with pytest.raises(UnreachableError, match="the answer is 429"):
        read()
    assert read.waits == [60.0] * 3


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (Play(200, HTML, b"<html>"), "a login page or proxy answered instead of the server"),
        (Play(200, {}, b"x" * 101), "sent more than 100 bytes"),
        (Play(200, {}, b"x" * 101, chunked=True), "sent more than 100 bytes"),
        (Play(headers={"Content-Encoding": "br"}), r"packed \(br\)"),
    ],
)
def test_what_is_refused(read, server, play, words):
    server.always["/list"] = play
    with pytest.raises(DecdecError, match=words):
        read(limit=100)


def test_pages_are_read_where_they_are_wanted(read, server):
    server.always["/list"] = Play(200, HTML, b"<html>")
    assert read(pages=True).body == b"<html>"


def test_another_status_is_the_callers_to_explain(read, server):
    server.always["/list"] = Play(404, {"X-Error-Code": "RepoNotFound"})
    with pytest.raises(StatusError) as caught:
        read()
    assert (caught.value.status, caught.value.headers["x-error-code"]) == (404, "RepoNotFound")


def test_a_stop_and_a_server_that_never_answers(read, server):
    server.always["/list"] = Play(silent=True)

    def stop():
        if server.requests:
            raise Interrupted

    with pytest.raises(Interrupted):
        read(stop)
    with pytest.raises(UnreachableError, match="did not answer within"):
        read(limits=Limits(tries=1, answer_s=0.2))


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/", "gopher://x/", "http://"])
def test_an_address_that_is_none(url):
    with pytest.raises(DecdecError, match="cannot be used"):
        read_document(Address(url), "Asking", lambda: None, client=quick_client)


def test_a_secret_that_is_no_header_is_not_quoted(read):
    with pytest.raises(DecdecError, match="headers for the server cannot be used") as caught:
        read(headers={"Authorization": "Bearer hf_secret\n"})
    assert "hf_secret" not in caught.value.sentence
