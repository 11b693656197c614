"""Prepared models as plain folders that other programs load."""
