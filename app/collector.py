"""Python's garbage collector, kept from halting the screen."""

from __future__ import annotations

import gc


def spare_the_program() -> None:
    """Leave out of every later collection what the program's start made, for it stays until the end.

    Looking through all of it took 75 ms each time, which is a key that comes late.
    """
    gc.collect()
    gc.freeze()
