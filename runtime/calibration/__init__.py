"""Calibration: what inputs the decoder's linears see on the project's own prompts."""

from runtime.calibration.collect import Recorder, bucket_profile, calibrate, record
from runtime.calibration.prompts import MAX_TOKENS, prompts, token_batches
from runtime.calibration.statistics import InputStatistics

__all__ = [
    "MAX_TOKENS",
    "InputStatistics",
    "Recorder",
    "bucket_profile",
    "calibrate",
    "prompts",
    "record",
    "token_batches",
]
