"""Whatever happens, the user gets one sentence and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

import click

from app import unexpected
from app.text import one_line
from runtime.errors import DecdecError

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def guarded(command: Callable[[], object]) -> int:
    """Run a command; its exit code."""
    try:
        code = command()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except DecdecError as error:
        return _say(error.sentence, error.code)
    except (KeyboardInterrupt, click.Abort):
        return _say("Stopped.", INTERRUPTED)
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _say(f"{error.filename or 'The output'} cannot be used: {error.strerror or error}.", FAILED)
    except Exception as error:
        return _say(unexpected.told(error), FAILED)


def _say(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(one_line(sentence), file=sys.stderr)
    return code


def _reader_gone() -> int:
    """Whoever read stdout (`head`) has left: nothing more to say, and nothing to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
