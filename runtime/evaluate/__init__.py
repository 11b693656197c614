"""Quality of quantised weights against the source's own, in figures."""
