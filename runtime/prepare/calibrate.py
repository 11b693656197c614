"""The bucket profile of a model being prepared, from the project's own prompts."""

from __future__ import annotations

from pathlib import Path

from runtime import calibration, lowbit
from runtime.int8x import Int8xReader
from runtime.model.quantised import build_int8
from runtime.progress import JobContext
from runtime.text.tokenizer import Tokenizer


def calibrate(folder: Path, ctx: JobContext) -> None:
    """Run the prompts through the INT8 model in `folder` and write its profile, unless it is there.

    INT8 inputs differ from full precision by less than one of the 32 buckets; every base shares the profile.
    """
    if lowbit.has_profile(folder):
        return
    batches = calibration.token_batches(Tokenizer.from_folder(folder).encode_plain)
    lowbit.write_profile(folder, calibration.bucket_profile(build_int8(Int8xReader(folder)), batches, ctx))
