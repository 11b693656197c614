"""The chat's state machine: user intents and engine events in, commands and state out. Knows no screen."""

from __future__ import annotations

from enum import Enum
from typing import Any

from app.conversation import Conversation, Turn, TurnState
from app.editing import Editing
from app.journal import Journal
from app.loading import Loading
from app.slider import Position, SliderState
from runtime.errors import DecdecError
from runtime.protocol.commands import Generate, Load, Sampling, SetSlowdown, Stop
from runtime.protocol.events import Done, Event, Failed, Loaded, Progress, Stats, Token


class Phase(Enum):
    """What the engine is doing for this chat."""

    EMPTY = "no model"
    LOADING = "loading"
    READY = "ready"
    ANSWERING = "answering"
    STOPPING = "stopping"
    BROKEN = "engine stopped"


class ChatSession(Editing):
    """One conversation on one engine: `push` takes every event, intents return the command to send.

    `journal` hears of every change that is to be kept. `sampling` and `max_tokens` hold from the next
    answer on.
    """

    def __init__(
        self,
        system_prompt: str = "",
        slowdown_pct: float = 0.0,
        loading: Loading | None = None,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(Conversation(system_prompt), journal or Journal())
        self.slider = SliderState(Position(slowdown_pct))
        self.phase = Phase.EMPTY
        self.sampling = Sampling()
        self.max_tokens: int | None = None
        self.how_to_load = loading or Loading()
        self.loaded: Loaded | None = None
        self.loading: Progress | None = None
        self.problem = ""

    @property
    def busy(self) -> bool:
        """Whether an answer is being written or a question waits."""
        return self.phase in (Phase.ANSWERING, Phase.STOPPING) or self._open_turn() is not None

    # Intents

    def load(self, model: str, base: str = "") -> Load:
        """Begin to bring a model into memory; `base`: instead of the one that is usually wanted."""
        self._unload(Phase.LOADING, "the model is loading")
        self.model, self.problem = model, ""
        return self.how_to_load.command(model, base)

    def ask(self, question: str) -> Generate | None:
        """Add a question. None while the model still loads: `waiting()` gives the command then.

        Raises DecdecError when no answer can come, so that the text stays with the user.
        """
        self._require_engine()
        return self._opened(self.conversation.ask(question, self.model))

    def regenerate(self, turn: Turn) -> Generate | None:
        """Answer a turn's question again, as a variant of it."""
        return self.edit(turn, turn.question)

    def edit(self, turn: Turn, question: str) -> Generate | None:
        """Ask something else in the place of a turn; what was there stays as another branch."""
        self._require_engine()
        return self._opened(self.conversation.branch(turn, question, self.model))

    def go_on(self) -> Generate | None:
        """Continue the newest answer where it ended. Raises DecdecError when it ended by itself."""
        self._require_engine()
        turn = self.conversation.last
        if turn is None or not turn.cut:
            raise DecdecError("There is nothing to continue", "the last answer came to its end", "")
        turn.state, turn.failure, turn.finish_reason = TurnState.WAITING, "", ""
        self._kept = turn.answer
        return self.waiting()

    def waiting(self) -> Generate | None:
        """The command for a question that waits, once the model is ready."""
        turn = self._open_turn()
        if self.phase is not Phase.READY or not turn:
            return None
        self.phase = Phase.ANSWERING
        return Generate(self.conversation.messages(), self.sampling, self.max_tokens)

    def stop(self) -> Stop | None:
        """End the running answer, or take back a question that still waits for the model."""
        if self.phase is Phase.ANSWERING:
            self.phase = Phase.STOPPING
            return Stop()
        if self.phase is not Phase.STOPPING and (turn := self._open_turn()):
            turn.state, turn.finish_reason = TurnState.DONE, "stopped"
            self.journal.turn(self.conversation, turn)
        return None

    def new_chat(self) -> Stop | None:
        """Start over with the same system prompt; a running answer is stopped and kept as far as it came."""
        return self.open(Conversation(self.conversation.system_prompt))

    def open(self, conversation: Conversation) -> Stop | None:
        """Go on with another conversation."""
        command = self.stop()
        if turn := self._open_turn():
            turn.state, turn.finish_reason = TurnState.DONE, "stopped"
            self.journal.turn(self.conversation, turn)
        self.take_up(conversation)
        return command

    def _require_engine(self) -> None:
        self.require_idle()
        if self.phase is Phase.EMPTY:
            raise DecdecError("No model is loaded", "", "F2 chooses one")
        if self.phase is Phase.BROKEN:
            raise DecdecError("The engine is not running", self.problem, "F12 starts it again")

    def _opened(self, turn: Turn) -> Generate | None:
        self._kept = ""
        self.journal.conversation(self.conversation)
        self.journal.turn(self.conversation, turn)
        return self.waiting()

    def slowdown(self) -> SetSlowdown:
        """The slider's target as a command."""
        position = self.slider.position
        return SetSlowdown(position.pct, position.lossless)

    # Events

    def push(self, event: Event) -> None:
        """Apply one event of the worker."""
        match event:
            case Loaded():
                self._on_loaded(event)
            case Progress(job="load"):
                self.loading = event
            case Token():
                self._on_token(event)
            case Stats():
                self._on_stats(event)
            case Done(job="generate"):
                self._on_done(event.result)
            case Failed(job="generate"):
                self._end_answer(_sentence(event))
            case Failed(job="set_slowdown") if not self.slider.lent:
                self.slider.refused()
            case Failed(job="load" | "worker"):
                self._on_broken(_sentence(event))

    def _on_loaded(self, event: Loaded) -> None:
        self.loaded, self.loading, self.phase, self.model = event, None, Phase.READY, event.model
        self.slider.loaded(event)

    def _on_token(self, event: Token) -> None:
        # Text of an answer that `new_chat` dropped still arrives until the worker has stopped.
        if turn := self._open_turn():
            turn.state = TurnState.STREAMING
            turn.answer += event.text
            self.journal.turn(self.conversation, turn)

    def _on_stats(self, event: Stats) -> None:
        self.slider.measured(event)
        turn = self._open_turn()
        if turn and self.phase in (Phase.ANSWERING, Phase.STOPPING):
            turn.stats = self.stats = event

    def _on_done(self, result: dict[str, Any]) -> None:
        if turn := self._open_turn():
            if isinstance(text := result.get("text"), str):
                turn.answer = self._kept + text
            turn.finish_reason = str(result.get("finish_reason", "stop"))
            dropped = result.get("dropped_messages", 0)
            turn.dropped_messages = dropped if isinstance(dropped, int) else 0
        self._end_answer("")

    def _end_answer(self, failure: str) -> None:
        if turn := self._open_turn():
            turn.state = TurnState.FAILED if failure else TurnState.DONE
            turn.failure = failure
            self.journal.turn(self.conversation, turn)
        if self.phase in (Phase.ANSWERING, Phase.STOPPING):
            self.phase = Phase.READY

    def _on_broken(self, sentence: str) -> None:
        self._end_answer(sentence)
        self._unload(Phase.BROKEN, "the engine is not running")
        self.problem = sentence

    def _unload(self, phase: Phase, reason: str) -> None:
        self.phase, self.loaded, self.loading = phase, None, None
        self.slider.unloaded(reason)

    def _open_turn(self) -> Turn | None:
        turn = self.conversation.last
        return turn if turn and turn.open else None


def _sentence(event: Failed) -> str:
    return DecdecError(event.what, event.why, event.fix).sentence
