"""How long a Retry-After header asks to wait."""

from datetime import UTC, datetime

import pytest

from runtime.download.limits import retry_after

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 120 ", 120),
        ("9" * 400, 999_999_999),
        ("Tue, 01 Dec 2026 08:01:30 GMT", 90),
        ("Tue, 01 Dec 2026 09:01:30 +0100", 90),
        ("Tue, 01 Dec 2026 07:00:00 GMT", 0),
        ("Tue, 99 Dec 2026 07:00:00 GMT", 0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", 0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 251_606_275_139),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
        ("", 0),
        ("-1", 0),
        ("1.5", 0),
        ("²", 0),
        ("soon", 0),
    ],
)
def test_seconds_dates_and_nonsense(value, seconds):
    assert retry_after(value, lambda: NOW) == seconds
