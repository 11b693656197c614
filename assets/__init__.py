"""Data only: model catalogue, calibration prompts, themes, defaults."""
