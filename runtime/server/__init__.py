"""An OpenAI-compatible HTTP server before one worker: requests are answered in turn, by the same events as
everywhere. Light by contract: no torch, transformers or numpy here, the engine lives in its own process.
"""

from runtime.server.access import Access
from runtime.server.run import Service, bind, is_loopback, url_of
from runtime.server.settings import Limits, Settings

__all__ = ["Access", "Limits", "Service", "Settings", "bind", "is_loopback", "url_of"]
