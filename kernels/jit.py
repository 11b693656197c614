"""How CPU kernels are compiled: cached on disk and free of the interpreter lock.

The decorators keep the function's type, so callers are checked against the Python signature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be re-ordered (so they vectorise) and products fused; NaN and infinity keep their meaning.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


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
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
