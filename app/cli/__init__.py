"""The command line. Heavy imports stay inside the commands that need them, so that `--help` is instant."""
