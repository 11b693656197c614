"""Calibration: the texts that a model reads to be measured, and what its linears see meanwhile."""

from runtime.calibration.prompts import MAX_TOKENS, prompts, token_batches
from runtime.calibration.statistics import SINK_TOKENS, InputStatistics

__all__ = ["MAX_TOKENS", "SINK_TOKENS", "InputStatistics", "prompts", "token_batches"]
