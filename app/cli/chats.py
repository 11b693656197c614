"""`chats`: the conversations of the chat, without the chat."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from app.cli import work
from app.text import one_line
from runtime.errors import DecdecError

if TYPE_CHECKING:
    from app.conversation import Conversation
    from app.history import History
    from app.history.listing import Entry

# Characters of an id in a list: enough to tell thousands apart.
_SHOWN_ID = 8
_LAST = "last"


@click.group()
def chats() -> None:
    """List, print, export, import and delete the conversations of the chat.

    A conversation is named by the beginning of its id, as `list` prints it, or by "last".
    """


@contextlib.contextmanager
def _history() -> Iterator[History]:
    from app.history import History

    history, problem = History.open()
    if problem:
        raise DecdecError(problem)
    with contextlib.closing(history):
        yield history


def _entries(history: History, words: str = "") -> tuple[Entry, ...]:
    return history.page(words, limit=1 << 30).entries


def _named(history: History, name: str) -> Entry:
    """The entry that a person means. DecdecError where it is none, or more than one."""
    entries = _entries(history)
    found = entries[:1] if name == _LAST else [e for e in entries if name and e.id.startswith(name)]
    if len(found) != 1:
        why = "none is called so" if not found else f"{len(found)} begin so"
        raise DecdecError(f"No conversation {one_line(name)}", why, "see decdec-chat chats list")
    return found[0]


def _loaded(history: History, name: str) -> Conversation:
    conversation = history.load(_named(history, name).id)
    if conversation is None:
        raise DecdecError(f"No conversation {one_line(name)}", "it was deleted a moment ago")
    return conversation


@chats.command(name="list")
@click.argument("words", nargs=-1)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def list_(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """The newest conversations, or those that hold all WORDS in titles, questions or answers."""
    from app.history import dates

    with _history() as history:
        page = history.page(" ".join(words), limit)
    if as_json:
        fields = ("id", "title", "updated", "messages", "model")
        rows = [{name: getattr(entry, name) for name in fields} for entry in page.entries]
        work.print_json({"total": page.total, "conversations": rows})
        return
    work.print_table([_row(entry, dates.stamp(entry.updated)) for entry in page.entries])
    if page.total > len(page.entries):
        click.echo(f"{page.total - len(page.entries)} older; --limit shows more.", err=True)
    if not page.total:
        click.echo(
            "No conversation holds these words." if words else "No conversation is kept yet.", err=True
        )


def _row(entry: Entry, updated: str) -> dict[str, Any]:
    short = entry.id[:_SHOWN_ID]
    return {"id": short, "updated": updated, "messages": entry.messages, "title": entry.title}


@chats.command()
@click.argument("name", default=_LAST)
def show(name: str) -> None:
    """Print a conversation as Markdown."""
    from app.history import markdown

    with _history() as history:
        click.echo(markdown.document(_loaded(history, name)), nl=False)


@chats.command()
@click.argument("name", default=_LAST)
@click.argument("file", default="")
@click.option("--all", "everything", is_flag=True, help="Every conversation; the one argument is the FILE.")
def export(name: str, file: str, everything: bool) -> None:
    """Write a conversation to FILE: .md to read, .json with every variant. Nothing is overwritten."""
    from app.history import files

    with _history() as history:
        if everything:
            wish = "chats.json" if name == _LAST else name
            kept = (history.load(entry.id) for entry in _entries(history))
            path = files.export_all([each for each in kept if each is not None], wish)
        else:
            path = files.export(_loaded(history, name), file)
    click.echo(f"Saved as {one_line(str(path))}.")


@chats.command(name="import")
@click.argument("file")
def import_(file: str) -> None:
    """Take in the conversations of a .json FILE that was exported."""
    from app.history import files

    conversations = files.read(file)
    with _history() as history:
        history.add_all(conversations)
        history.index()
    click.echo(f"{len(conversations)} imported.")


@chats.command()
@click.argument("name")
def delete(name: str) -> None:
    """Delete a conversation; for a week `restore` brings it back."""
    with _history() as history:
        entry = _named(history, name)
        history.delete(entry.id)
    click.echo(f"{one_line(entry.title)} is deleted. decdec-chat chats restore brings it back for a week.")


@chats.command()
def restore() -> None:
    """Bring back the conversation that was deleted last."""
    with _history() as history:
        entry = history.undelete()
    if entry is None:
        raise DecdecError("Nothing that was deleted is left to bring back")
    click.echo(f"{one_line(entry.title)} is back.")
