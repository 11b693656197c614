"""An OpenAI-compatible server in the engine's place: protocol commands become HTTP, its answers events.

Light by contract, as all of `runtime.client`; the HTTP library is imported when a connection is made.
"""

from runtime.client.remote.client import RemoteClient
from runtime.client.remote.server import Server

__all__ = ["RemoteClient", "Server"]
