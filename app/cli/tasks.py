"""`eval bbh`, `eval mt-bench` and `eval judge`: quality by answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from app.cli import work
from app.cli.bases import BaseName
from app.cli.lists import IntList, WordList
from runtime import locations
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import LOSSLESS, Command, Job, Prepare

if TYPE_CHECKING:
    from app.models import Target

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("qkv", "o", "gate_up", "down")

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)
_POSITION = (
    click.option("-m", "--model", metavar="MODEL", help="Default: the default model."),
    click.option("--base", type=BaseName(lossless=True), default=DEFAULT.name, show_default=True),
    click.option(
        "--k-chunk",
        type=IntList(),
        metavar="LIST",
        help="Channels per 1024: one number, or four for qkv,o,gate-up,down.",
    ),
    click.option("--slowdown", type=click.FloatRange(0, 20), metavar="PCT", help="Or a slider position."),
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


def _position(command: F) -> F:
    """Options that say which weights answer, and how far they are corrected."""
    for option in reversed(_POSITION):
        command = option(command)
    return command


@click.command()
@click.option("--data", type=_FOLDER, required=True, help="With bbh/TASK.json and cot-prompts/TASK.txt.")
@_position
@click.option("--tasks", type=WordList(), metavar="LIST", help="All unless told.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The first N questions of each task.")
@click.option("--shots", type=click.Choice(["cot", "none"]), default="cot", show_default=True)
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Of an answer; 512 unless told.")
@click.option("--out", type=_FILE, metavar="FILE", help="Answers as JSON lines; a stopped run goes on there.")
@_JSON
def bbh(
    data: Path,
    model: str | None,
    base: str,
    k_chunk: list[int] | None,
    slowdown: float | None,
    out: Path | None,
    as_json: bool,
    **wish: Any,
) -> None:
    """BIG-Bench Hard: greedy answers, with worked examples before each question."""
    from app.models import target

    wanted, table = target(model), _table(k_chunk, slowdown)
    position = {"base": base, "k_chunk": table, "slowdown": slowdown}
    place = out or _default_file("bbh", wanted.name, position, wish)
    result = _run(wanted, "eval_bbh", data=str(data.resolve()), out=str(place.resolve()), **position, **wish)
    if as_json:
        work.print_json(result)
        return
    work.print_table(result["tasks"])
    click.echo(f"mean over tasks: {100 * result['accuracy']:.1f} %; answers: {result['out']}")


@click.command(name="mt-bench")
@click.option("--data", type=_FOLDER, required=True, help="With question.jsonl.")
@_position
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="N questions, of all categories.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Of an answer; 1024 unless told.")
@click.option("--out", type=_FILE, metavar="FILE", required=True, help="Answers as JSON lines (FastChat's).")
@_JSON
def mt_bench(
    data: Path,
    model: str | None,
    base: str,
    k_chunk: list[int] | None,
    slowdown: float | None,
    out: Path,
    as_json: bool,
    **wish: Any,
) -> None:
    """MT-Bench: answers of two turns, for `eval judge`."""
    from app.models import target

    position = {"base": base, "k_chunk": _table(k_chunk, slowdown), "slowdown": slowdown}
    files = {"data": str(data.resolve()), "out": str(out.resolve())}
    _print(_run(target(model), "eval_mt_bench", **files, **position, **wish), as_json)


@click.command()
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--data", type=_FOLDER, required=True, help="With question.jsonl, judge_prompts.jsonl, …")
@click.option(
    "--endpoint", metavar="URL", required=True, help="OpenAI-compatible, as http://localhost:8000/v1."
)
@click.option("--judge-model", metavar="NAME", required=True, help="The endpoint's name of the judge.")
@click.option("--api-key-env", metavar="NAME", help="The environment variable that holds the API key.")
@click.option("--out", type=_FILE, metavar="FILE", help="Judgments; beside the answers unless told.")
@_JSON
def judge(answers: Path, data: Path, out: Path | None, as_json: bool, **who: Any) -> None:
    """Let another model grade the answers in ANSWERS from 1 to 10."""
    files = {"answers": str(answers.resolve()), "data": str(data.resolve())}
    _print(work.job("eval_judge", **files, out=str(out.resolve()) if out else None, **who), as_json)


def _run(wanted: Target, job: str, **args: Any) -> dict[str, Any]:
    """The job on a model that is prepared first where it or its base is missing."""
    given = {key: value for key, value in args.items() if value is not None}
    base = str(given["base"])

    def commands() -> Iterator[Command]:
        if not (wanted.prepared and wanted.has(base)):
            bases = (DEFAULT.name,) if base == LOSSLESS else (base,)
            yield Prepare(wanted.source, wanted.name, bases=bases)
        yield Job(job, {"model": wanted.name, **given})

    return work.run(commands())


def _table(k_chunk: list[int] | None, slowdown: float | None) -> dict[str, int] | None:
    if k_chunk is None:
        return None
    if slowdown is not None:
        raise click.UsageError("give one of --k-chunk and --slowdown")
    if len(k_chunk) not in (1, len(KINDS)):
        raise click.UsageError("--k-chunk takes one number, or four for qkv,o,gate-up,down")
    counts = k_chunk * len(KINDS) if len(k_chunk) == 1 else k_chunk
    return dict(zip(KINDS, counts, strict=True))


def _default_file(task: str, model: str, position: dict[str, Any], wish: dict[str, Any]) -> Path:
    """One file for every position, so that none is mixed with another."""
    table = position["k_chunk"]
    parts = [task, model, str(position["base"])]
    parts += ["-".join(str(k) for k in table.values())] if table else []
    parts += [f"slowdown-{position['slowdown']:g}"] if position["slowdown"] is not None else []
    parts += [f"{key}-{wish[key]}" for key in ("shots", "max_tokens") if wish.get(key) not in (None, "cot")]
    return locations.evaluations() / f"{'.'.join(parts)}.jsonl"


def _print(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        work.print_json(result)
        return
    tables = {key: value for key, value in result.items() if key == "categories"}
    work.print_facts({key: value for key, value in result.items() if key not in tables})
    for rows in tables.values():
        work.print_table(rows)
