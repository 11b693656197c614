"""`python -m tests.faults.disk --rounds N`: all actions, up to N rounds of every fault for each."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.disk.faults import private_mounts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--heavy", action="store_true", help="the actions that need weights, with torch")
    parser.add_argument("--no-mounts", action="store_true", help="as where nothing may be mounted")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    mounts = not given.no_mounts and private_mounts()
    from tests.faults.disk.actions import LIGHT
    from tests.faults.disk.sweep import Sweep, report

    actions = LIGHT
    if given.heavy:
        from tests.faults.disk.heavy import HEAVY as actions  # noqa: N811 - one or the other

    chosen = [each for each in actions if not given.only or each.__name__ in given.only]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        sweep = Sweep(Path(folder).resolve(), given.rounds, given.seed, mounts)
        try:
            return report(sweep.run(chosen))
        finally:
            sweep.close()


if __name__ == "__main__":
    sys.exit(main())
