"""Running statistics of one linear's input."""

from __future__ import annotations

import numpy as np
import torch

from kernels.dec import chunk_bounds

# The first token of a text is an attention sink: its inputs are many times larger than any other's, and no
# token is ever decoded there. It would stretch the upper buckets until all other values fall into one.
SINK_TOKENS = 1


class InputStatistics:
    """Over all tokens seen: bucket profile, and mean square per channel.

    profile float32 [n_in]: within every chunk of 1024, |x| sorted descending per token, then the element-wise
    maximum over tokens. So entry k-1 of a chunk bounds the k-th largest magnitude any token showed there.
    """

    def __init__(self, n_in: int) -> None:
        self.profile = torch.zeros(n_in)
        self._squares, self.tokens = torch.zeros(n_in, dtype=torch.float64), 0

    @property
    def mean_square(self) -> torch.Tensor:
        """float32 [n_in]; the importance by which a fixed choice of channels is made."""
        return (self._squares / max(self.tokens, 1)).float()

    def add(self, x: torch.Tensor) -> None:
        """Take in inputs [tokens, n_in]; tokens with a value that is not finite are left out."""
        x = x.float()
        x = x[torch.isfinite(x).all(dim=1)]
        if not len(x):
            return
        for start, stop in chunk_bounds(x.shape[1]):
            # numpy's vectorised sort takes a tenth of torch's time on short rows.
            largest = torch.from_numpy(np.sort(x[:, start:stop].abs().numpy(), axis=1).max(axis=0)).flip(0)
            self.profile[start:stop] = torch.maximum(self.profile[start:stop], largest)
        self._squares += x.square().sum(0, dtype=torch.float64)
        self.tokens += len(x)
