"""Where models come from: hub, package index, folder, GGUF; and the catalogue.

Light by contract: imported by the front end, so no torch, numpy, transformers or huggingface_hub here.
"""

from runtime.sources import catalogue
from runtime.sources.base import Source
from runtime.sources.resolve import resolve

__all__ = ["Source", "catalogue", "resolve"]
