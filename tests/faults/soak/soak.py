"""Many requests by many clients at once; what is held is measured in between, while nothing is asked."""

import asyncio
import os
import random
import statistics
import time
from collections import Counter

from tests.faults.soak.clients import PATIENCE_S, Clients

AT_ONCE = 8
# Allocators keep some of what was used once; what leaks grows with every request.
SERVER_MB, ENGINE_MB, FILES = 24, 48, 2
# Of the pool that asyncio keeps for work that blocks; it is filled little by little.
THREADS = min(32, (os.cpu_count() or 1) + 4)


async def soak(serving, requests, tokens=8, stages=5, probes=5, say=lambda line: None):
    """What was held after each stage, and how many requests of each kind there were."""
    clients, kinds, samples = Clients(serving.port, tokens), Counter(), []
    for stage in range(stages):
        await _stage(clients, requests // stages, kinds)
        latency = await _settled(clients, probes)
        samples.append(serving.held(requests // stages * (stage + 1), latency))
        say(samples[-1].row())
    return samples, dict(kinds)


def faults(samples):
    """What grew from the first sample to the last one, as sentences; none for a server that holds."""
    first, last = samples[0], samples[-1]
    limits = {
        "server_mb": SERVER_MB,
        "engine_mb": ENGINE_MB,
        "files": FILES,
        "threads": THREADS,
        "processes": 0,
    }
    grown = {name: getattr(last, name) - getattr(first, name) for name in limits}
    return [f"{name} grew by {grown[name]:g}" for name, limit in limits.items() if grown[name] > limit]


async def _stage(clients, requests, kinds):
    left = iter(range(requests))

    async def client():
        for number in left:
            kind = clients.kinds[number] if number < len(clients.kinds) else random.choice(clients.kinds)
            await kind()
            kinds[kind.__name__] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(client())


async def _settled(clients, probes):
    """Seconds of one answer alone, once nobody waits any more."""
    data = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with asyncio.timeout(PATIENCE_S):
        while (await clients.said(data))[1] != b'{"status":"ok","waiting":0}':
            await asyncio.sleep(0.05)
    took = []
    for _ in range(probes):
        started = time.perf_counter()
        await clients.whole()
        took.append(time.perf_counter() - started)
    return statistics.median(took)
