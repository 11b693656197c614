"""A prepared model starts and answers without asking any network for anything."""

import socket

from runtime.engine.load import load_engine
from runtime.generation.session import Session
from runtime.prepare.pipeline import prepare
from runtime.progress import JobContext
from runtime.protocol import Done, Generate, Load, Message, Prepare

SILENT = JobContext.silent()


class Undisturbed:
    """Nobody stops the answer or moves the slider."""

    def stopped(self):
        return False

    def slowdown(self):
        return None


def test_loading_and_answering_touch_no_network(home, source, monkeypatch):
    prepare(Prepare(str(source), bases=("rtn4",)), SILENT)
    asked = []

    def trap(name):
        def note(*arguments, **options):
            asked.append((name, arguments))
            raise OSError("there is no network")

        return note

    for owner, name in (
        (socket, "getaddrinfo"),
        (socket, "gethostbyname"),
        (socket, "create_connection"),
        (socket.socket, "connect"),
        (socket.socket, "connect_ex"),
        (socket.socket, "sendto"),
    ):
        monkeypatch.setattr(owner, name, trap(name))
    found = load_engine(Load("tiny", "rtn4", 64), SILENT)
    session = Session(found.engine, found.loaded, found.folder)
    events = list(session.answer(Generate((Message("user", "hi"),), max_tokens=3), Undisturbed()))
    assert isinstance(events[-1], Done)
    assert asked == []
