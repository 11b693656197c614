"""Ten thousand tokens in one process: whether memory and speed stay as they are."""
