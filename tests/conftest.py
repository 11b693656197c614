"""No test reaches the network unless it is marked `network`; loopback is always allowed."""

from __future__ import annotations

import ipaddress
import socket

import pytest


def _is_loopback(address) -> bool:
    if not isinstance(address, tuple):
        return True
    host = address[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(autouse=True)
def _no_network(request, monkeypatch):
    if request.node.get_closest_marker("network"):
        return
    connect = socket.socket.connect

    def guarded(self, address):
        if not _is_loopback(address):
            raise OSError(f"tests have no network: {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
