"""Amounts of bytes in words."""

from __future__ import annotations

_UNITS = ((10**9, "GB", 2), (10**6, "MB", 1), (10**3, "kB", 1))


def in_words(count: int) -> str:
    """Bytes in decimal units, as disks are sold: 1.08 GB, 98.4 MB, 512 bytes."""
    for size, unit, digits in _UNITS:
        if count >= size:
            return f"{count / size:.{digits}f} {unit}"
    return f"{count} bytes"
