"""`python -m tests.faults.kills [--rounds N] [--jobs a,b] [--seed N]`: kills by the hundred, and one table.

Rounds are spread over the jobs; `--points` kills the store and what keeps settings and conversations before
each of their changes on disk, in forks. Seeds are printed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.kills import history_points, hub, jobs, points, store_points, text_points, writers
from tests.faults.kills.chat import ChatKilling
from tests.faults.kills.rounds import PARTS, Killing, Tally

# Chats by name, and whether they have the real engine; how many times an even share of the rounds a job gets.
CHATS = {"chat": False, "real chat": True}
SHARES = {"chat": 4.0, "tune": 0.7, "settings": 1.5, "history": 1.5}
POINTS = (*store_points.OPERATIONS, *text_points.OPERATIONS, *history_points.OPERATIONS)


def main() -> int:
    """Kill, print the table; 1 where anything was lost or wrong."""
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        root = Path(folder).resolve()
        tallies = _points(root, asked) if asked.points else _programs(root, asked)
    _print(tallies)
    return int(any(tally.lost or tally.wrong for tally in tallies))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=[])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--points", action="store_true")
    parser.add_argument("--step", type=int, default=1)
    return parser.parse_args()


def _points(root: Path, asked: argparse.Namespace) -> list[Tally]:
    tallies = []
    for operation in POINTS:
        if not asked.jobs or operation.name in asked.jobs:
            began = time.monotonic()
            outcome = points.at_every_boundary(operation, root / operation.name, asked.step)
            tally = Tally(operation.name, outcome.kills, outcome.kills, boundaries=outcome.boundaries)
            tally.seconds = time.monotonic() - began
            tally.note("before a change", outcome.wrong)
            tallies.append(tally)
    return tallies


def _programs(root: Path, asked: argparse.Namespace) -> list[Tally]:
    print(f"seed {asked.seed}", file=sys.stderr, flush=True)
    shared = root / "shared"
    (shared / jobs.NAME).mkdir(parents=True)
    address = hub.start(shared / jobs.NAME)
    names = [job.name for job in (*jobs.JOBS, *writers.JOBS)] + list(CHATS)
    chosen = [name for name in names if not asked.jobs or name in asked.jobs]
    if not set(chosen) <= writers.WITHOUT_MODEL:
        jobs.make_shared(shared)
    whole = sum(SHARES.get(name, 1.0) for name in chosen)
    tallies = []
    for name in chosen:
        rounds = max(1, round(asked.rounds * SHARES.get(name, 1.0) / whole))
        # By name, so that a job alone is killed at the same moments.
        source = random.Random(f"{asked.seed} {name}")
        tally = _killing(name, root, shared, address, source).run(rounds)
        _print([tally], sys.stderr)
        tallies.append(tally)
    return tallies


def _killing(
    name: str, root: Path, shared: Path, address: str, source: random.Random
) -> Killing | ChatKilling:
    if name in CHATS:
        return ChatKilling(CHATS[name], root, shared, source)
    job = next(job for job in (*jobs.JOBS, *writers.JOBS) if job.name == name)
    return Killing(job, root, shared, address, source)


def _print(tallies: list[Tally], file: object = None) -> None:
    print(
        f"{'job':28} {'kills':>5} {'ends':>5} {'lost':>5} {'wrong':>5} {'s':>7}  when, whom, before what",
        file=file,
    )
    for tally in tallies:
        when = "/".join(str(tally.spread[part]) for part in range(PARTS))
        whom = " ".join(f"{name} {count}" for name, count in tally.reached.most_common())
        what = " ".join(f"{name} {count}" for name, count in tally.boundaries.most_common())
        figures = (
            f"{tally.kills:5} {tally.jobs:5} {len(tally.lost):5} {len(tally.wrong):5} {tally.seconds:7.1f}"
        )
        print(f"{tally.name:28} {figures}  {when}; {whom}; {what}", file=file, flush=True)
    if len(tallies) > 1:
        sums = [sum(map(get, tallies)) for get in (_kills, _ends, _lost, _wrong)]
        print(f"{'all':28} " + " ".join(f"{each:5}" for each in sums), file=file)


def _kills(tally: Tally) -> int:
    return tally.kills


def _ends(tally: Tally) -> int:
    return tally.jobs


def _lost(tally: Tally) -> int:
    return len(tally.lost)


def _wrong(tally: Tally) -> int:
    return len(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
