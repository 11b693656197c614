"""Whole decode steps of an engine: speed, memory and slowdown beside what others take."""
