"""The server's log on a disk without room."""

import logging
from pathlib import Path

import pytest

from runtime.server.logs import LOGGERS, logged_to_file

FULL = Path("/dev/full")


def test_warnings_go_to_the_file_and_not_to_the_terminal(home, capfd):
    with logged_to_file():
        logging.getLogger(LOGGERS[0]).warning("written down")
    assert "written down" in (home / "logs" / "server.log").read_text()
    assert capfd.readouterr() == ("", "")


def test_what_was_refused_before_is_no_matter(home, monkeypatch):
    logger = logging.getLogger(LOGGERS[0])
    monkeypatch.setattr(logger, "disabled", True)
    logger.setLevel(logging.CRITICAL)
    assert not logger.isEnabledFor(logging.WARNING)
    with logged_to_file():
        logger.warning("written down")
    assert "written down" in (home / "logs" / "server.log").read_text()
    assert logger.disabled
    assert logger.level == logging.CRITICAL
    logger.setLevel(logging.NOTSET)


@pytest.mark.skipif(not FULL.exists(), reason="the device of Linux")
def test_a_full_disk_is_silent(home, capfd):
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "server.log").symlink_to(FULL)
    with logged_to_file():
        for name in LOGGERS:
            logging.getLogger(name).warning("not written down")
    assert capfd.readouterr() == ("", "")
