"""Where a server's warnings and tracebacks go: a file, never the terminal."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
from collections.abc import Iterator

from runtime import locations

LOGGERS = ("decdec.server", "uvicorn", "asyncio")
MAX_BYTES = 1 << 20


class _Silent(logging.handlers.RotatingFileHandler):
    """Leaves out what the disk refuses, where logging's own way is a traceback in the terminal."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Say nothing."""


@contextlib.contextmanager
def logged_to_file() -> Iterator[None]:
    """Send the libraries' warnings to logs/server.log below the home folder, or nowhere if that cannot be."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.handlers, logger.propagate, logger.level, logger.disabled) for logger in loggers]
    handler = _handler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for logger in loggers:
        _set(logger, [handler], False, logging.WARNING, False)
    try:
        yield
    finally:
        for logger, state in zip(loggers, before, strict=True):
            _set(logger, *state)
        # What the disk refused is tried once more here.
        with contextlib.suppress(OSError):
            handler.close()


def _set(
    logger: logging.Logger, handlers: list[logging.Handler], propagates: bool, level: int, disabled: bool
) -> None:
    logger.handlers, logger.propagate = handlers, propagates
    # Libraries that configure logging disable whatever loggers they find.
    logger.disabled = disabled
    # Not by its attribute: loggers remember which levels they take.
    logger.setLevel(level)


def _handler() -> logging.Handler:
    path = locations.home() / "logs" / "server.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Silent(path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        return logging.NullHandler()
