"""Where models come from: hub, package index, folder, GGUF; and the catalogue."""
