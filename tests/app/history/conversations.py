"""Conversations of any shape, for properties, and ways to compare them."""

from hypothesis import strategies as st

from app.conversation import Conversation, Turn, TurnState
from app.history import tree
from runtime.protocol.events import KChunk, Stats

# Any text that a terminal or a model can give, half of a surrogate pair excepted.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
STATS = st.none() | st.builds(
    Stats,
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    *[st.integers(0, 1 << 40)] * 5,
    st.floats(0, 20),
    st.none() | st.floats(-5, 50),
    st.builds(KChunk, *[st.integers(0, 1024)] * 4),
    st.integers(0, 1 << 40),
    st.booleans(),
)


@st.composite
def conversations(draw, least=0):
    made = Conversation(draw(TEXT), draw(TEXT), created=draw(st.floats(1, 1e10)))
    for _ in range(draw(st.integers(least, 8))):
        parents = [""] + [turn.id for turn in made.all_turns]
        failure = draw(st.sampled_from(["", "It failed: no memory."]))
        made.add(
            Turn(
                draw(TEXT),
                draw(TEXT),
                TurnState.FAILED if failure else TurnState.DONE,
                draw(st.sampled_from(["", "stop", "length", "context", "stopped"])),
                failure,
                draw(STATS),
                draw(st.integers(0, 1000)),
                draw(TEXT),
                parent=draw(st.sampled_from(parents)),
                created=draw(st.floats(0, 1e10)),
            )
        )
    for turn in made.all_turns:
        if draw(st.booleans()):
            made.choose(turn)
    return made


def facts(conversation):
    """Everything that has to survive."""
    return {
        "id": conversation.id,
        "title": conversation.title,
        "system_prompt": conversation.system_prompt,
        "created": conversation.created,
        "turns": conversation.all_turns,
        "path": [turn.id for turn in conversation.turns],
        "shown": tree.shown(conversation),
    }


def said(*pairs, **fields):
    """A finished conversation of questions with answers."""
    made = Conversation(**fields)
    for question, answer in pairs:
        turn = made.ask(question, "a-model")
        turn.answer, turn.state, turn.finish_reason = answer, TurnState.DONE, "stop"
    return made


def deep(levels):
    """Many turns that follow each other."""
    return said(*[(f"q{n}", f"a{n}") for n in range(levels)])
