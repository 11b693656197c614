"""Actions that need weights: made, extended, encoded, exported, drawn, scored. For the long run."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from safetensors.torch import save_file

from runtime import pictures, store
from runtime.evaluate.jobs import ppl
from runtime.export import jobs as exporting
from runtime.int8x import jobs as int8x_jobs
from runtime.prepare.pipeline import prepare
from runtime.protocol.commands import Prepare
from runtime.store import atomic
from tests.fakes.small_tokenizers import write_byte_level
from tests.faults.disk.actions import SILENT, Action, digests, listed_models
from tests.runtime.model.tiny import tiny_model

SIZES = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16, "num_attention_heads": 4}

# The disk fills after the question whether there is room.
store.require_space = exporting.require_space = lambda *about: None


def tiny_source(folder: Path) -> Path:
    """A Llama of two blocks in Hugging Face layout: the same bytes and times in every round."""
    return Path(shutil.copytree(_made_once(), folder))


@cache
def _made_once() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="decdec-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _, checkpoint = tiny_model("llama", spread=0.04, **SIZES, vocab_size=512, num_hidden_layers=2)
    save_file({n: checkpoint.load(n).contiguous() for n in checkpoint.names()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(checkpoint.config))
    write_byte_level(folder)
    return folder


class Prepared(Action):
    """A folder becomes a model with a low-bit base."""

    bases = ("rtn4",)

    def prepare(self) -> None:
        self.source = tiny_source(self.elsewhere / "tiny")

    def act(self) -> None:
        prepare(Prepare(str(self.source), name="tiny", bases=self.bases), SILENT)

    def seen(self) -> object:
        return listed_models()


class OneBaseMore(Prepared):
    """A model that is there gets a base more, calibrated."""

    heals = True

    def prepare(self) -> None:
        super().prepare()
        super().act()
        self.bases = ("rtn4", "rtn3")


class Encoded(Prepared):
    """`int8x encode` into a folder of the user's."""

    def act(self) -> None:
        arguments = {"source": str(self.source), "destination": str(self.disk / "home" / "out")}
        int8x_jobs.encode(arguments, SILENT)

    def again(self) -> None:
        if not (self.disk / "home" / "out" / "config.json").exists():
            self.act()

    def seen(self) -> object:
        out = self.disk / "home" / "out"
        return digests(out) if (out / "config.json").exists() else {}


class Exported(Prepared):
    """`export` into a folder that must not be there."""

    def prepare(self) -> None:
        super().prepare()
        self.folder = self.disk / "home" / "exported"
        os.environ["DECDEC_HOME"] = str(self.elsewhere / "models")
        self.model = str(prepare(Prepare(str(self.source), name="tiny", bases=self.bases), SILENT).path)
        os.environ["DECDEC_HOME"] = str(self.disk / "home")

    def act(self) -> None:
        exporting.export({"model": self.model, "destination": str(self.folder)}, SILENT)

    def again(self) -> None:
        if not self.folder.exists():
            self.act()

    def seen(self) -> object:
        return digests(self.folder)


class Drawn(Action):
    """A picture in the place of another."""

    def prepare(self) -> None:
        self.path = self.disk / "home" / "picture.png"
        atomic.write_bytes(self.path, b"the old picture")

    def act(self) -> None:
        figure = pictures.new_figure(2, 2)
        figure.subplots().plot([1, 2, 3])
        pictures.save(figure, self.path)

    def seen(self) -> object:
        return digests(self.disk / "home")


class Scored(Prepared):
    """`eval ppl`, whose folder for a while is on the disk that fails."""

    def prepare(self) -> None:
        super().prepare()
        (self.elsewhere / "text").write_text("some words " * 200)
        self.scratch = self.disk / "home" / "tmp"
        self.scratch.mkdir(parents=True)
        self.rows: object = None

    def act(self) -> None:
        tempfile.tempdir = str(self.scratch)
        try:
            arguments = {
                "model": str(self.source),
                "text": str(self.elsewhere / "text"),
                "bases": [{"method": "rtn", "bits": 4}],
            }
            self.rows = ppl({**arguments, "windows": 1, "context": 64}, SILENT)["rows"]
        finally:
            tempfile.tempdir = None

    def seen(self) -> object:
        # A disk that lets nothing be removed keeps what lies there, as any program's.
        return self.rows


HEAVY = (Prepared, OneBaseMore, Encoded, Exported, Drawn, Scored)
