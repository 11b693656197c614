"""The guard itself."""

import socket

import pytest


def test_other_hosts_are_refused():
    with socket.socket() as s, pytest.raises(OSError, match="no network"):
        s.connect(("192.0.2.1", 80))


def test_loopback_is_allowed():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as s:
        s.connect(server.getsockname())
