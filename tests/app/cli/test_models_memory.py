"""`models --catalogue` names the memory that the set-up and the list of models name."""

import json

from click.testing import CliRunner

from app.cli.models import models
from app.library.rows import offers_of
from app.surroundings import room
from runtime import machine
from runtime.sources import catalogue


def test_the_figure_is_what_this_machine_needs(monkeypatch):
    monkeypatch.setenv("DECDEC_DEVICE", "cpu")
    done = CliRunner().invoke(models, ["--catalogue", "--json"])
    listed = {row["name"]: row["memory"] for row in json.loads(done.output)["models"]}
    offers = offers_of(catalogue.load(), room=room(machine.glance()))
    assert listed == {offer.name: offer.fit.memory for offer in offers}
