"""The jobs that are killed: what the command line does with models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.faults.kills import checks, hub
from tests.faults.kills.processes import Place, Running
from tests.faults.kills.rounds import Job

NAME = "tiny"
HUB_NAME = hub.REPO.replace("/", "--")
PREPARED = "prepared"


def make_shared(shared: Path) -> None:
    """A tiny model's folder, and a home in which it is prepared."""
    import torch
    from safetensors.torch import save_file

    from tests.fakes.small_tokenizers import write_byte_level
    from tests.runtime.model.tiny import tiny_model

    sizes = {"hidden_size": 128, "intermediate_size": 160, "head_dim": 32, "num_attention_heads": 4}
    sizes["max_position_embeddings"] = 1024
    folder = shared / NAME
    folder.mkdir(parents=True, exist_ok=True)
    _, checkpoint = tiny_model("llama", spread=0.04, **sizes, vocab_size=512)
    tensors = {name: checkpoint.load(name).to(torch.float32).contiguous() for name in checkpoint.names()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(checkpoint.config))
    write_byte_level(folder)
    place = Place(shared / PREPARED, shared)
    place.home.mkdir(parents=True)
    running = Running(place, _command("import", str(folder), "--base", "rtn4"))
    assert running.end() == 0, running.said


def _command(*arguments: str) -> tuple[str, ...]:
    from tests.faults.kills.processes import PROGRAM

    return (*PROGRAM, *arguments)


def with_model(place: Place) -> None:
    """The prepared model is there."""
    shutil.copytree(place.shared / PREPARED / "home", place.home, dirs_exist_ok=True)


def empty(place: Place) -> None:
    """Nothing is there."""


def source(place: Place) -> str:
    """The folder of the model in Hugging Face layout."""
    return str(place.shared / NAME)


def stays_listed(place: Place) -> list[str]:
    """The model that was there is there, whatever goes on beside it."""
    return [] if NAME in checks.listed(place) else ["lost: the model that was there is not listed"]


def model(name: str, answering: bool = True):
    """A look at a whole model: lossless, listed, answering, with nothing left of broken work."""

    def look(place: Place) -> list[str]:
        found = checks.litter(place)
        if name not in checks.listed(place):
            return [*found, "the model is not listed"]
        return found + checks.verifies(place, name) + (checks.answers(place, name) if answering else [])

    return look


def files_of(name: str, dated: bool = False):
    """The bytes of a model."""
    return lambda place: checks.digests(place.home / "models" / name, dated)


def downloaded(place: Place) -> list[str]:
    """A file of the hub that has its own name is whole."""
    wanted = checks.digests(place.shared / NAME)
    found = {path.name: path for path in place.home.glob(f"downloads/*/{hub.COMMIT}/*")}
    same = {name: checks.digests(path.parent)[name] for name, path in found.items() if name in wanted}
    return [f"{name} has its name and another content" for name, sha in same.items() if sha != wanted[name]]


def encoded(place: Place) -> list[str]:
    """A folder that says it is INT8-X decodes to its source."""
    folder = place.root / "out"
    return checks.verifies(place, str(folder)) if (folder / "config.json").exists() else []


def is_encoded(place: Place) -> bool:
    """It came to its end."""
    return (place.root / "out" / "config.json").exists()


def _out(place: Place) -> dict[str, str]:
    return checks.digests(place.root / "out")


def exported(place: Place) -> list[str]:
    """An export is there whole or not at all."""
    folder = place.root / "out"
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    needed = {"config.json", "model.safetensors", "tokenizer.json"}
    return [] if not names or needed <= names else [f"exported are {sorted(names)}"]


def tuned(place: Place) -> list[str]:
    """A tuning that is there can be read."""
    for path in place.home.glob("profiles/*.json"):
        assert json.loads(path.read_bytes())["path"]
    return []


def was_tuned(place: Place) -> list[str]:
    """It is there."""
    return checks.litter(place) + ([] if list(place.home.glob("profiles/*.json")) else ["it is not tuned"])


def gone(place: Place) -> bool:
    """The model is deleted."""
    return NAME not in checks.listed(place)


def nothing_left(place: Place) -> list[str]:
    """Of a deleted model."""
    left = sorted(path.name for path in (place.home / "models").iterdir())
    return [] if gone(place) and not left else [f"left are {left}"]


def tuning_and_model(place: Place) -> list[str]:
    """Both are as they were, or new."""
    return tuned(place) + stays_listed(place)


def has_out(place: Place) -> bool:
    """The export came to its end."""
    return (place.root / "out").is_dir()


def out_of(place: Place) -> str:
    """The folder that is written."""
    return str(place.root / "out")


def pulling(place: Place) -> tuple[str, ...]:
    """From the hub."""
    return ("pull", hub.REPO, "--base", "rtn4")


def importing(*options: str):
    """From the folder."""
    return lambda place: ("import", source(place), *options)


FILES, WHOLE = files_of(NAME), model(NAME)
JOBS = (
    Job("download", empty, pulling, downloaded, model(HUB_NAME), files_of(HUB_NAME, dated=True)),
    Job("import", empty, importing("--base", "rtn4"), finished=WHOLE, result=FILES),
    Job(
        "encode",
        empty,
        lambda p: ("int8x", "encode", source(p), out_of(p)),
        encoded,
        encoded,
        _out,
        is_encoded,
    ),
    Job("quantise awq", with_model, importing("--base", "awq4"), stays_listed, WHOLE, FILES),
    Job(
        "encode anew",
        with_model,
        importing("--base", "rtn4", "--preset", "fine"),
        stays_listed,
        WHOLE,
        FILES,
    ),
    Job("tune", with_model, lambda p: ("tune", "-m", NAME, "--base", "rtn4"), tuning_and_model, was_tuned),
    Job("export", with_model, lambda p: ("export", NAME, out_of(p)), exported, exported, _out, has_out),
    Job("rm", with_model, lambda p: ("rm", NAME), finished=nothing_left, ended=gone),
)
