"""Arms the counter in a program that a test starts with this folder on its path; see `counting`."""

from __future__ import annotations

import os

if root := os.environ.get("KILLS_BELOW"):
    from counting import Counter

    record = os.environ["KILLS_RECORD"]
    Counter(root, int(os.environ.get("KILLS_AT", "0")), f"{record}.{os.getpid()}").arm()
