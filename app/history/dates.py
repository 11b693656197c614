"""Days and times of conversations, in words."""

from __future__ import annotations

from datetime import date, datetime, timedelta

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_HOUR_S = 3600


def local(seconds: float) -> datetime:
    """Seconds since the epoch as a local time; the epoch itself where a platform cannot tell."""
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):
        return datetime(1970, 1, 1)


def day(seconds: float, now: float) -> str:
    """A heading for everything of one day: `Today`, `Yesterday`, `Monday`, `4 May`, `4 May 2025`."""
    then, today = local(seconds).date(), local(now).date()
    if then == today:
        return "Today"
    if then == today - timedelta(days=1):
        return "Yesterday"
    if today - timedelta(days=7) < then < today:
        return _DAYS[then.weekday()]
    return _day_of_month(then) if then.year == today.year else f"{_day_of_month(then)} {then.year}"


def moment(seconds: float, now: float) -> str:
    """When, below a day's heading: `just now`, `5 min ago`, `14:02`."""
    passed = now - seconds
    if 0 <= passed < 60:
        return "just now"
    return f"{int(passed // 60)} min ago" if 0 <= passed < _HOUR_S else clock(seconds)


def clock(seconds: float) -> str:
    """`14:02`."""
    return f"{local(seconds):%H:%M}"


def stamp(seconds: float) -> str:
    """`2026-05-04 14:02`."""
    return f"{local(seconds):%Y-%m-%d %H:%M}"


def _day_of_month(then: date) -> str:
    return f"{then.day} {_MONTHS[then.month - 1]}"
