"""Settings and notes of pulls, killed at every boundary."""

from __future__ import annotations

import json
import tomllib

from app import settings_file
from app.library import records
from app.library.pulls import Pull
from app.settings import Settings
from runtime import locations
from tests.faults.kills.points import Operation
from tests.faults.kills.store_points import litter, nothing

BEFORE = Settings(model="one", system_prompt="Be brief.", slowdown_pct=5.0)
AFTER = Settings(model="two", system_prompts={"a": "b"}, context=1024)
NOTE = "# my own words\n"


def with_settings(place):
    settings_file.keep(Settings(), BEFORE)
    path = locations.settings_file()
    path.write_text(NOTE + path.read_text())


def keep_settings(place):
    now, _ = settings_file.load()
    if now == BEFORE:
        assert not settings_file.keep(BEFORE, AFTER)


def old_or_new(place):
    text = locations.settings_file().read_text()
    tomllib.loads(text)
    found, trouble = settings_file.load()
    wrong = [] if found in (BEFORE, AFTER) else [f"settings are {found}"]
    wrong += [] if text.startswith(NOTE) else ["a person's words are lost"]
    return wrong + ([trouble] if trouble else [])


def new_settings(place):
    found, _ = settings_file.load()
    settings_file.keep(found, found)
    return ([] if found == AFTER else [f"settings are {found}"]) + litter(place)


def of_an_earlier_version(place):
    nothing(place)
    path = locations.old_settings_file()
    path.write_text(json.dumps({"model": "one", "system_prompt": "Be brief.", "slowdown_pct": 5.0}))


def read_settings(place):
    settings_file.load()


def as_before(place):
    found, trouble = settings_file.load()
    return ([] if found == BEFORE else [f"settings are {found}"]) + ([trouble] if trouble else [])


def note(place):
    records.keep(Pull("one", "hub/one"))
    records.keep(Pull("two", "hub/two"))
    records.forget(Pull("one", "hub/one"))


def noted(place):
    names = [pull.name for pull in records.unfinished()]
    return [] if names in ([], ["one"], ["one", "two"], ["two"]) else [f"noted are {names}"]


def noted_at_the_end(place):
    names = [pull.name for pull in records.unfinished()]
    return ([] if names == ["two"] else [f"noted are {names}"]) + litter(place)


OPERATIONS = (
    Operation("settings", with_settings, keep_settings, old_or_new, new_settings),
    Operation("settings of an earlier version", of_an_earlier_version, read_settings, as_before, as_before),
    Operation("notes of pulls", nothing, note, noted, noted_at_the_end),
)
