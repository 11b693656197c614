"""Run as a script: pip in this process, which ends when the process that started it does, however that ends.

The starter keeps the other end of stdin open for as long as it lives; a kill -9 closes it too. Nothing of
this project is imported here, so that the script runs by its path alone.
"""

import os
import runpy
import sys
import threading


def main() -> None:
    """Run pip with our own arguments."""
    threading.Thread(target=_end_with_starter, args=(_take_stdin(),), daemon=True).start()
    sys.argv[0] = "pip"
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def _take_stdin() -> int:
    """Stdin under a number that no child of pip's inherits; what reads the usual one finds nothing."""
    ours, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return ours


def _end_with_starter(stdin: int) -> None:
    while os.read(stdin, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
