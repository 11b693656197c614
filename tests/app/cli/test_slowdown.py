"""Where the slider stands for one command."""

import click
import pytest
from click.testing import CliRunner

from app.cli.run import run
from app.cli.serve import serve
from app.cli.slowdown import Slowdown, usual_pct
from app.slider import DEFAULT_SLOWDOWN_PCT
from runtime import locations


def test_a_number_within_the_slider():
    assert Slowdown().convert("2.5", None, None) == 2.5
    with pytest.raises(click.BadParameter, match="20"):
        Slowdown().convert("21", None, None)


@pytest.mark.parametrize("text", ["lossless", " Lossless"])
def test_lossless_is_told_the_way(text):
    with pytest.raises(click.BadParameter, match="--base int8 is lossless"):
        Slowdown().convert(text, None, None)


@pytest.mark.parametrize(("command", "more"), [(run, ["hi"]), (serve, [])])
def test_the_commands_tell_it(command, more):
    result = CliRunner().invoke(command, ["--slowdown", "lossless", *more])
    assert result.exit_code == 2
    assert "--base int8 is lossless" in result.output


def test_the_usual_position_is_that_of_the_settings():
    assert usual_pct() == DEFAULT_SLOWDOWN_PCT
    locations.settings_file().parent.mkdir(parents=True, exist_ok=True)
    locations.settings_file().write_text("slowdown_pct = 2.5\n")
    assert usual_pct() == 2.5
