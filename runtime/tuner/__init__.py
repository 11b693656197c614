"""How many channels each linear may correct at every slider position, measured on this machine."""
