"""Measuring functions: time a kernel, return plain figures."""
