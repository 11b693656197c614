"""python -m tests.faults.soak [--requests N] [--home FOLDER] [--tokens N]: by hand, for long runs.

`--home`: a DECDEC_HOME with the default model prepared; else a tiny random model is made.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.faults.soak.serving import HEADINGS, serving
from tests.faults.soak.soak import faults, soak


def arguments_for(home, scratch):
    """What `serve` is told; DECDEC_HOME is set."""
    os.environ["DECDEC_HOME"] = home or str(Path(scratch) / "home")
    from tests.faults.soak.model import BASE, CONTEXT, prepare_tiny

    chosen = [] if home else ["-m", prepare_tiny(Path(scratch)), "--base", BASE]
    return [*chosen, "--context", str(CONTEXT)]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--home")
    given = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as scratch, serving(*arguments_for(given.home, scratch)) as server:
        print(HEADINGS, flush=True)
        say = lambda line: print(line, flush=True)  # noqa: E731
        samples, kinds = asyncio.run(soak(server, given.requests, given.tokens, say=say))
    found = faults(samples)
    print(json.dumps({"kinds": kinds, "samples": [asdict(each) for each in samples], "faults": found}))
    print(f"{time.time() - started:.0f} s", *found, sep="\n", file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
