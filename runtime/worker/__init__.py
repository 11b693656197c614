"""The engine's own process: JSON lines of commands in, of events out."""
