"""Whatever a command prints, and however it prints it."""

import contextlib
import io
import sys

import click
from rich.console import Console

from app.cli import safe_stream


@contextlib.contextmanager
def protected():
    """What stands behind stdout and stderr while they are safe."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        safe_stream.protect()
        yield out, err


def test_every_way_to_print_is_safe():
    with protected() as (out, err):
        print("a\x1b[2J", "b\x9b", file=sys.stdout)
        click.echo("c\x1b]0;t\x07")
        sys.stdout.writelines(["d\x1b\n", "e\u202e\n"])
        click.echo("f\x1b", err=True)
    assert out.getvalue() == "a␛[2J b\ufffd\nc␛]0;t␇\nd␛\ne\ufffd\n"
    assert err.getvalue() == "f␛\n"


def test_progress_rewrites_its_line_and_nothing_else_does():
    with protected() as (_, err):
        sys.stderr.write("\r10 %")
        sys.stderr.write("\r20 %\rX")
    assert err.getvalue() == "\r10 %\r20 %␍X"


def test_what_draws_the_last_words_of_the_chat_writes_its_own_codes():
    with protected() as (_, err):
        Console(stderr=True, force_terminal=True, color_system="truecolor").print("[bold]x[/]")
    assert "\x1b[1m" in err.getvalue()


def test_an_answer_goes_to_a_pipe_as_it_is_and_to_a_terminal_neutralised():
    with protected() as (out, _):
        assert safe_stream.for_an_answer() is out
        out.isatty = lambda: True
        assert safe_stream.for_an_answer() is sys.stdout
