"""From a source to a whole model in the store."""
