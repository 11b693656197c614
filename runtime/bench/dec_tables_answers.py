"""Figures 14 and 15 of the DecDEC paper: accuracy in BIG-Bench Hard, scores in MT-Bench, from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from runtime.bench.table import Row, Table
from runtime.protocol.events import KChunk
from runtime.tasks.bbh import Record
from runtime.tasks.given import read_lines, wrong
from runtime.tasks.judge import NO_SCORE, Judgment

FIGURE_14 = "Accuracy in BIG-Bench Hard (paper: figure 14)"
FIGURE_15 = "Scores in MT-Bench (paper: figure 15)"


def answer_tables(files: Sequence[Path]) -> list[Table]:
    """Both figures, as far as there are files: answers of `eval bbh` and judgments of `eval judge`."""
    accuracy: list[Row] = []
    scores: list[Row] = []
    for path in files:
        lines = read_lines(path, dict[str, Any])
        if not lines:
            raise wrong(path, "it holds no results")
        if "judgment" in lines[0]:
            scores.append(_scores(read_lines(path, Judgment)))
        elif "right" in lines[0]:
            accuracy.append(_accuracy(read_lines(path, Record)))
        else:
            raise wrong(path, "it holds neither BBH answers nor judgments of MT-Bench")
    return [
        Table("figure 14", FIGURE_14, accuracy, _notes(accuracy, "eval bbh")),
        Table("figure 15", FIGURE_15, scores, _notes(scores, "eval judge")),
    ]


def _accuracy(records: list[Record]) -> Row:
    tasks: dict[str, list[bool]] = {}
    for record in records:
        tasks.setdefault(record.task, []).append(record.right)
    wish = records[0].wish
    return {
        "model": wish.position.model,
        "base": wish.position.base,
        "k_chunk": _words(wish.position.k_chunk or KChunk()),
        "shots": wish.shots,
        "tasks": len(tasks),
        "questions": len(records),
        "announced": fmean(record.announced for record in records),
        "accuracy": fmean(fmean(right) for right in tasks.values()),
    }


def _scores(judgments: list[Judgment]) -> Row:
    scored = [judgment for judgment in judgments if judgment.score != NO_SCORE]
    turns = {turn: [j.score for j in scored if j.turn == turn] for turn in (1, 2)}
    means = {turn: fmean(scores) if scores else None for turn, scores in turns.items()}
    return {
        "model": judgments[0].model,
        "judge": judgments[0].judge[0],
        "questions": len({judgment.question_id for judgment in judgments}),
        "without score": len(judgments) - len(scored),
        "first turn": means[1],
        "second turn": means[2],
        "score": fmean(judgment.score for judgment in scored) if scored else None,
    }


def _words(table: KChunk) -> str:
    counts = msgspec.structs.astuple(table)
    return str(counts[0]) if len(set(counts)) == 1 else "/".join(map(str, counts))


def _notes(rows: list[Row], command: str) -> list[str]:
    return (
        []
        if rows
        else [f"There are no results here: make them by {command} and name the files by --results."]
    )
