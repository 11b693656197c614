"""How CPU kernels are compiled: cached on disk and free of the interpreter lock."""

from __future__ import annotations

from functools import partial

import numba

njit = partial(numba.njit, cache=True, nogil=True, fastmath=False)

# Sums may be re-ordered (so they vectorise) and products fused; NaN and infinity keep their meaning.
njit_relaxed = partial(numba.njit, cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
