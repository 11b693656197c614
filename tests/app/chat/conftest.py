"""What all tests of the screens share."""

import pytest
from textual.widgets import Input, TextArea


@pytest.fixture(autouse=True)
def _steady_cursor(monkeypatch):
    """A cursor that blinks is there in one picture and not in the next."""
    for widget in (Input, TextArea):
        monkeypatch.setattr(widget.__dict__["cursor_blink"], "_default", False)
