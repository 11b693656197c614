"""Fuzzing of everything the product reads that somebody else may have written.

`python -m tests.fuzz.run NAME --seconds 600` runs one target of `tests/fuzz/targets/` for long;
`test_targets.py` runs every target over its seeds, the kept corpus and a few mutations.
"""
