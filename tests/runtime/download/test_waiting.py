"""How long a download waits for a server, and how a stop is heard meanwhile."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from runtime.download import Limits, UnreachableError
from runtime.errors import Interrupted
from tests.runtime.download.conftest import CONTENT, PATH
from tests.runtime.download.lying_server import Play


def test_waits_double_with_jitter_and_a_dead_server_is_given_up(client, server):
    server.always[PATH] = Play(500)
    with pytest.raises(UnreachableError, match="the answer is 500"):
        client.get()
    assert len(client.waits) == Limits().tries - 1
    for wait, usual in zip(client.waits, (1, 2, 4, 8, 16, 30, 30), strict=True):
        assert usual * 0.5 <= wait <= usual * 1.5
    assert len(set(client.waits)) == len(client.waits)


def test_tries_count_anew_when_something_came(client, server):
    server.plays[PATH] = [play for _ in range(5) for play in (*[Play(500)] * 6, Play(cut=100))]
    assert client.get() == CONTENT


@pytest.mark.parametrize("status", [429, 503])
def test_the_server_says_how_long_to_wait(client, server, status):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    asked = ["7", later, "99999999", "nonsense", "-5", "Mon, 01 Jan 2001 00:00:00 GMT"]
    server.plays[PATH] = [Play(status, {"Retry-After": value}) for value in asked]
    assert client.get() == CONTENT
    assert client.waits[0] == 7
    assert 60 < client.waits[1] <= 90
    assert client.waits[2] == Limits().longest_asked_s
    assert all(0 < wait <= 45 for wait in client.waits[3:])


def test_a_server_that_drips_is_left_and_the_rest_asked_for_anew(client, server):
    client.limits = Limits(window_s=0.3, window_bytes=1000)
    server.plays[PATH] = [Play(drip=10_000), Play(drip=10_000)]
    assert client.get() == CONTENT
    starts = [int(asked.removeprefix("bytes=").removesuffix("-")) for asked in client.ranges()[1:]]
    assert starts[0] >= 10_000
    assert starts[1] >= starts[0] + 10_000


def test_a_server_that_only_drips_is_given_up(client, server):
    client.limits = Limits(tries=3, window_s=0.2, window_bytes=1000)
    server.always[PATH] = Play(drip=0)
    with pytest.raises(UnreachableError, match="hardly anything came"):
        client.get()
    assert len(server.requests) == 3


def test_a_server_that_never_answers_is_given_up(client, server):
    client.limits = Limits(tries=2, answer_s=0.2)
    server.always[PATH] = Play(silent=True)
    with pytest.raises(UnreachableError, match="no answer within"):
        client.get()


async def never(seconds):
    """A wait that only a stop ends."""
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "play",
    [Play(silent=True), Play(drip=5_000), Play(503, {"Retry-After": "100"})],
    ids=["answer", "bytes", "wait"],
)
def test_a_stop_is_heard_whatever_it_waits_for(client, server, play):
    server.always[PATH] = play

    def stop(have):
        if server.requests:
            raise Interrupted

    with pytest.raises(Interrupted):
        client.get(on_bytes=stop, wait=never)
    server.always.clear()
    assert client.get() == CONTENT
