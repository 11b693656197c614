"""The entry point `decdec-chat`. Imports wait until an interrupt while they load can be answered."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a command line; never shows a traceback."""
    _open_closed_streams()
    try:
        from app import environment
        from app.cli import safe_stream
        from app.cli.guard import guarded
        from app.cli.root import cli
    except KeyboardInterrupt:
        sys.exit(130)

    def command() -> object:
        environment.apply()
        return cli.main(prog_name="decdec-chat", standalone_mode=False)

    safe_stream.protect()
    sys.exit(guarded(command))


def _open_closed_streams() -> None:
    """A standard stream that the caller closed becomes an empty one, lowest descriptor first.

    Else it is None here, and the next file that is opened takes its descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - lives as long as we


if __name__ == "__main__":
    main()
