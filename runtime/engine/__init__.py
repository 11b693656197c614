"""Engines: a decode loop over a model in memory, and the loading that makes one."""
