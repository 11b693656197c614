"""Whether memory and speed stay as they are: `python -m runtime.bench.long_run --out FOLDER`.

One answer to the end of the context, then a conversation of 10,000 tokens, with the slider moved at random
moments. `--model`: a prepared one, answered by a worker process as the chat's is. `--random`: a shape of
`runtime.bench.shapes` with random weights, made on the device, answered in this process. Writes
FOLDER/long-run.json and .md; what other runs left there under other names stays, and `--merge` takes parts
of another long-run.json in. A random model needs torch, triton, numba, msgspec, platformdirs, psutil, jinja2,
safetensors, gguf and tokenizers.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from runtime.bench.long_run import report
from runtime.bench.long_run.driving import Driver
from runtime.bench.long_run.speakers import SessionSpeaker, Speaker, WorkerSpeaker
from runtime.bench.shapes import BY_NAME, MINICPM
from runtime.bench.table import Table
from runtime.protocol.commands import Load
from runtime.tuner.profile import processor_name

NAME = "long-run"


def main() -> None:
    """Parse the arguments, run, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a prepared model; without it, --random")
    parser.add_argument("--random", choices=sorted(BY_NAME), default=MINICPM.name)
    parser.add_argument("--base", default="awq4")
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--note", default="", help="what else the machine did meanwhile")
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--home", type=Path, help="where prepared models are, if not in DECDEC_HOME")
    parser.add_argument("--merge", type=Path, help="run nothing, take the parts of this long-run.json in")
    arguments = parser.parse_args()
    if arguments.home:
        os.environ["DECDEC_HOME"] = str(arguments.home.resolve())
    if arguments.merge:
        write(arguments.out, json.loads(arguments.merge.read_text()))
        return
    with tempfile.TemporaryDirectory() as folder:
        speaker = speaker_of(arguments, Path(folder))
        try:
            write(arguments.out, measured(speaker, arguments))
        finally:
            speaker.close()


def speaker_of(arguments: argparse.Namespace, folder: Path) -> Speaker:
    """The prepared model in a worker, or a random one here."""
    if arguments.model:
        return WorkerSpeaker(Load(arguments.model, arguments.base, arguments.context))
    # It needs triton, which a prepared model on a CPU does not.
    from runtime.bench.long_run.random_speaker import random_engine

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = BY_NAME[arguments.random]
    return SessionSpeaker(random_engine(shape, arguments.base, arguments.context, device, folder))


def measured(speaker: Speaker, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both runs, as one part of the document under the device's name."""
    driver = Driver(speaker, arguments.seed, lambda line: print(line, flush=True))
    runs = [driver.long_answer(), driver.conversation(arguments.tokens)]
    loaded = speaker.loaded
    about = {
        "name": f"{loaded.model} on {loaded.device}",
        "base": loaded.base,
        "context": loaded.context_limit,
        "machine": f"{processor_name()}, {os.cpu_count()} cores",
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        **({"meanwhile": arguments.note} if arguments.note else {}),
    }
    return {about["name"]: {"about": about, "tables": [t.as_json() for t in report.tables(about, runs)]}}


def write(folder: Path, parts: dict[str, Any]) -> None:
    """Put the parts beside those that are there, and draw the page anew."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **parts}, indent=1) + "\n")
    path.with_suffix(".md").write_text(page({**known, **parts}))


def page(parts: dict[str, Any]) -> str:
    """All parts as Markdown."""
    return "\n".join(report.document(part["about"], tables_of(part["tables"])) for part in parts.values())


def tables_of(documents: Sequence[dict[str, Any]]) -> list[Table]:
    """Tables from their JSON."""
    known = {field.name for field in dataclasses.fields(Table)}
    return [Table(**{key: value for key, value in each.items() if key in known}) for each in documents]


if __name__ == "__main__":
    main()
