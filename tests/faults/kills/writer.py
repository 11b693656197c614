"""Programs that do one thing over and over: `python -m tests.faults.kills.writer WHAT`, see WRITERS.

They call what the chat calls, and say on stdout what is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

MANY, MOVES = 40, 6
SOURCES = ("one", "two")


def settings() -> None:
    """Two settings in turn; which one holds is told behind each change."""
    from app import settings_file
    from app.settings import Settings

    for number in range(MANY):
        before, _ = settings_file.load()
        after = Settings(model=SOURCES[number % 2], system_prompt=SOURCES[number % 2] * 200)
        trouble = settings_file.keep(before, after)
        assert not trouble, trouble
        print(number, flush=True)


def prompts(name: str, count: str) -> None:
    """System prompts, one after the other, as a chat that knows only its own."""
    import msgspec

    from app import settings_file
    from app.settings import Settings

    before = Settings()
    for number in range(int(count)):
        own = {**before.system_prompts, f"{name}{number}": name}
        after = msgspec.structs.replace(before, system_prompts=own)
        while trouble := settings_file.keep(before, after):
            print(trouble, file=sys.stderr)
        before = after


def history(count: str = str(MANY)) -> None:
    """Answers of many pieces; every piece is told once it would be drawn."""
    from app.history import History, Recorder
    from app.session import ChatSession
    from runtime.protocol.events import Done, Loaded, Token

    journal = Recorder(History(), lambda told: print("!", told, flush=True))
    session = ChatSession(journal=journal)
    session.load("m")
    session.push(Loaded("m", "low4", "cpu", 2048, 1))
    print(session.conversation.id, flush=True)
    for question in range(int(count)):
        session.ask(f"question {question}")
        for piece in range(int(count)):
            session.push(Token(f"{question}.{piece} ", 1))
            journal.drawing(session.conversation, session.conversation.last)
            print(f"{question}.{piece}", flush=True)
        session.push(Done("generate", {"finish_reason": "stop"}))
    journal.close()


def move(one: str, other: str) -> None:
    """The models from one folder to the other and back, as the settings do it."""
    import msgspec

    from app import environment, settings_file
    from runtime import locations
    from runtime.progress import JobContext
    from runtime.store import models, moving

    environment.apply()
    models()
    for _ in range(MOVES):
        target = Path(other if str(locations.home()) == one else one)

        def switch(target: Path = target) -> None:
            before, _ = settings_file.load()
            value = "" if target == locations.usual_home() else str(target)
            trouble = settings_file.keep(before, msgspec.structs.replace(before, cache_folder=value))
            assert not trouble, trouble
            environment.follow("cache_folder", value)

        moving.move(locations.home(), target, switch, JobContext.silent("move"))
        print(target, flush=True)


def copy(one: str, other: str) -> None:
    """The same, between what is taken for two disks."""
    from runtime.store import moving

    moving._same_disk = lambda source, target: False
    move(one, other)


WRITERS = {"settings": settings, "prompts": prompts, "history": history, "move": move, "copy": copy}

if __name__ == "__main__":
    WRITERS[sys.argv[1]](*sys.argv[2:])
