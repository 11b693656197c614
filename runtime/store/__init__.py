"""Whole models on disk: atomic writes, hashes, locks, listing."""
