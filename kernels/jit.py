"""How CPU kernels are compiled: cached on disk and free of the interpreter lock.

The decorators keep the function's type, so callers are checked against the Python signature.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be re-ordered (so they vectorise) and products fused; NaN and infinity keep their meaning.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


class _OptionalCache(FunctionCache):
    """Compiled code on disk, which saves time and is never the reason why something fails."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """None, so that it is compiled, where nothing is kept or what is kept cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            # A file that was cut off would stand in the way of the next one.
            with contextlib.suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """A full disk keeps nothing: it is compiled again at the next start."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def njit(function: F) -> F:
    """Compile with IEEE arithmetic, operation by operation; dividing by zero gives infinity, as in numpy."""
    return _compiled(function)


def njit_inline(function: F) -> F:
    """As `njit`, and inlined into every caller."""
    return _compiled(function, inline="always")


def njit_relaxed(function: F) -> F:
    """Compile with sums and products free to be re-ordered."""
    return _compiled(function, fastmath=_RELAXED)


def njit_relaxed_inline(function: F) -> F:
    """As `njit_relaxed`, and inlined into every caller."""
    return _compiled(function, fastmath=_RELAXED, inline="always")


def _compiled(function: F, **options: Any) -> F:
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    # No folder takes files, not even for a moment: then there is no cache.
    with contextlib.suppress(RuntimeError):
        compiled._cache = _OptionalCache(function)
    return cast(F, compiled)
