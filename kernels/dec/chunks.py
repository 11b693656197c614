"""How an input vector is cut into chunks, and how many channels of each are corrected."""

from __future__ import annotations

CHUNK = 1024


def chunk_bounds(n_in: int) -> list[tuple[int, int]]:
    """(start, stop) of every chunk of up to CHUNK channels; only the last may be shorter."""
    return [(start, min(start + CHUNK, n_in)) for start in range(0, n_in, CHUNK)]


def chunk_share(k_chunk: int, length: int) -> int:
    """Channels to correct in a chunk of `length`: k_chunk * length / CHUNK, halves to the even number.

    The one rounding rule of the project; every kernel takes its counts from here.
    """
    return min(length, round(k_chunk * length / CHUNK))
