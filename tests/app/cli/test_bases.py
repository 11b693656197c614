"""What the options for bases ask of the worker."""

import pytest

from app.cli import models
from app.models import Target
from runtime.protocol.commands import Prepare


@pytest.fixture
def asked(monkeypatch):
    sent = []

    def run(command, on_event=None):
        sent.append(command)
        return {"name": "m", "bases": ["awq4"]}

    monkeypatch.setattr("app.cli.work.run", run)
    monkeypatch.setattr("app.models.target", lambda name: Target("mine", name, False))
    return sent


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], Prepare("m", "mine")),
        (["--base", "awq3.0", "--base", "int8x3.4"], Prepare("m", "mine", bases=("awq3", "int8x3.4"))),
        (["--fit", "3.2GB"], Prepare("m", "mine", bases=("awq",), fit=3_200_000_000)),
        (["--base", "int8x", "--fit", "1GB"], Prepare("m", "mine", bases=("int8x",), fit=10**9)),
        (["--base-from", "x"], Prepare("m", "mine", bases=("packed4",), base_from="x")),
        (["--continuations"], Prepare("m", "mine", continuations=True)),
    ],
)
def test_options_become_one_command(asked, arguments, wanted):
    models.pull.main(["m", *arguments], standalone_mode=False)
    assert asked == [wanted]


@pytest.mark.parametrize(
    "arguments",
    [["--base", "awq"], ["--base", "awq3", "--fit", "1GB"], ["--base", "gptq4"], ["--fit", "much"]],
)
def test_contradictions_are_usage_errors(asked, arguments):
    with pytest.raises(SystemExit) as caught:
        models.pull.main(["m", *arguments])
    assert caught.value.code == 2
    assert not asked
