"""The DecDEC paper's tables on tensors and results that can be counted by hand, and once for real."""

import json
import math

import msgspec
import pytest
import torch

from runtime.bench import dec_tables, dec_tables_quality
from runtime.bench.dec_tables_answers import answer_tables
from runtime.bench.dec_tables_errors import SHARES, errors_left
from runtime.bench.dec_tables_inputs import chosen_blocks
from runtime.bench.dec_tables_outliers import static_recall
from runtime.bench.dec_tables_quality import (
    K_CHUNKS,
    Scope,
    equal_transfer,
    perplexity_tables,
    selection_table,
    width_table,
)
from runtime.bench.dec_tables_times import Measured, Times, normalised, profiles, times_table, tuner_table
from runtime.errors import DecdecError
from runtime.evaluate.request import BaseWish, Request
from runtime.progress import JobContext
from runtime.protocol import KChunk, SlowdownPoint
from runtime.tasks.asking import Position
from runtime.tasks.bbh import Record, Wish
from runtime.tasks.judge import Judgment
from runtime.tuner.measurer import Launch
from runtime.tuner.profile import Machine, Profile, write_profile
from runtime.tuner.verify import Detent
from tests.runtime.evaluate.word_model import save_word_model, write_words
from tests.runtime.model.tiny import tiny_model

RTN3, RTN4 = BaseWish("rtn", 3), BaseWish("rtn", 4)


def test_errors_left_are_those_of_products_with_some_channels_put_right():
    generator = torch.Generator().manual_seed(0)
    lost, x = torch.randn(6, 40, generator=generator), torch.randn(3, 40, generator=generator)
    order = x.abs().argsort(dim=1, descending=True)
    found = errors_left(lost, x, order)
    for share, left in zip(SHARES, found, strict=True):
        wanted = whole = 0.0
        for row, channels in zip(x, order, strict=True):
            kept = row.clone()
            kept[channels[: round(share * 40)]] = 0
            wanted += (lost @ kept).square().mean().item()
            whole += (lost @ row).square().mean().item()
        assert left == pytest.approx(wanted / whole, abs=1e-6)
    assert (found[0], found[-1]) == (1.0, 0.0)


def test_one_large_channel_is_nearly_all_of_the_error():
    lost, x = torch.ones(4, 100), torch.full((1, 100), 0.01)
    x[0, 63] = 10.0
    best = x.abs().argsort(dim=1, descending=True)
    assert errors_left(lost, x, best)[SHARES.index(0.01)] == pytest.approx((0.99 / 10.99) ** 2, rel=1e-4)


def test_static_recall_counts_common_channels():
    x = torch.tensor([[9.0, 8, 1, 2, 0], [0, 9, 1, 2, 8]])
    assert static_recall(x, torch.tensor([5.0, 4, 3, 2, 1]), 2) == [1.0, 0.5]


@pytest.mark.parametrize(("count", "blocks"), [(32, [8, 16, 24]), (30, [7, 15, 22]), (2, [0, 1]), (1, [0])])
def test_three_blocks_are_looked_at(count, blocks):
    assert chosen_blocks(count) == blocks


def test_equal_transfer_moves_equal_bytes():
    assert [equal_transfer(32, width) for width in (2, 4, 8, "exact")] == [64, 32, 16, 8]


def row(base=RTN3, k=0, select="bucket", width=4, ppl=10.0, recall=None):
    place = {"name": base.name, "base": base.method, "k_chunk": k, "select": select, "residual_bits": width}
    return {**place, "ppl": ppl, "kl": ppl / 100, "recall": recall, "bits_per_weight": 3.25}


def scope(**args):
    request = Request.parse({"model": "m", "text": "t", "base": ["rtn3", "rtn4"], **args})
    return Scope(request, controls=(RTN3,), widths=(RTN3,))


def test_a_base_gets_the_rows_that_its_tables_need_and_none_twice():
    rows, plain = list(scope().rows(RTN3)), list(scope().rows(RTN4))
    assert len(rows) == len(set(rows)) == 6 + 3 * 5 + 3 * 5
    assert [each.k_chunk for each in plain] == [0, *K_CHUNKS]
    exact = [each.k_chunk for each in rows if each.residual == "exact"]
    assert exact == [2, 4, 8, 16, 32]


def test_tables_find_their_figures_and_leave_gaps():
    measured = [
        row(ppl=100.0),
        row(k=8, ppl=50.0, recall=0.9),
        row(k=8, select="random", ppl=90.0, recall=0.1),
        row(k=16, width=2, ppl=60.0),
        row(RTN4, ppl=40.0),
    ]
    ppl, kl = perplexity_tables(measured)
    assert [(r["base"], r["k 0"], r["k 8"], r["k 16"]) for r in ppl.rows] == [
        ("rtn3", 100.0, 50.0, None),
        ("rtn4", 40.0, None, None),
    ]
    assert kl.rows[0]["k 8"] == 0.5
    by_select = {r["select"]: (r["k 8"], r["recall 8"]) for r in selection_table(measured, [RTN3]).rows}
    assert by_select["bucket"] == (50.0, 0.9)
    assert by_select["random"] == (90.0, 0.1)
    assert by_select["static"] == (None, None)
    widths = {r["residual"]: r["as k 8"] for r in width_table(measured, [RTN3]).rows}
    assert widths == {2: 60.0, 4: 50.0, 8: None, "exact, as 16": None}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path


def test_an_evaluated_base_is_not_evaluated_again(home, monkeypatch):
    (home / "t.txt").write_text("words")
    asked = []

    def score(request, rows, folder, ctx):
        asked.append([base.name for base in request.bases])
        return 9, [row(each.base, each.k_chunk, each.select, each.residual) for each in rows]

    monkeypatch.setattr(dec_tables_quality, "score", score)
    monkeypatch.setattr(dec_tables_quality, "locate", lambda model, ctx: home / "t.txt")

    def measure(**args):
        wanted = scope(text=str(home / "t.txt"), **args)
        return dec_tables_quality.measure(wanted, home, JobContext.silent())

    first = measure()
    assert asked == [["rtn3"], ["rtn4"]]
    assert measure() == first
    assert len(asked) == 2
    measure(windows=3)
    (home / "t.txt").write_text("other words")
    measure()
    assert len(asked) == 6


def test_accuracies_and_scores_come_from_files(tmp_path):
    wish = Wish(Position("m", "awq3", KChunk(8, 8, 8, 8)))
    records = [
        Record(task, i, "t", "a", True, right, 1, "stop", "", wish)
        for task, rights in (("one", [True, False]), ("two", [True]))
        for i, right in enumerate(rights)
    ]
    judged = [
        Judgment(1, "m-awq3-k8", ("j", "p"), "", "", score, turn)
        for score, turn in ((8.0, 1), (4.0, 2), (-1.0, 2))
    ]
    for name, lines in (("bbh.jsonl", records), ("judged.jsonl", judged)):
        (tmp_path / name).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    bbh, bench = answer_tables([tmp_path / "bbh.jsonl", tmp_path / "judged.jsonl"])
    (line,) = bbh.rows
    assert (line["base"], line["k_chunk"], line["questions"], line["accuracy"]) == ("awq3", "8", 3, 0.75)
    (line,) = bench.rows
    assert (line["first turn"], line["second turn"], line["score"], line["without score"]) == (8, 4, 6, 1)
    assert "eval bbh" in answer_tables([])[0].notes[0]


@pytest.mark.parametrize("content", [b"", b'{"a": 1}\n', b"[]\n", b"\xff"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(DecdecError, match=r"x\.jsonl cannot be used"):
        answer_tables([tmp_path / "x.jsonl"])


def test_times_are_those_of_the_next_measured_count():
    times = Times("down", 4, 8, 10.0, (8, 32), (1.0, 5.0))
    assert [normalised(times, k) for k in (1, 8, 16, 32, 64)] == [1.1, 1.1, 1.5, 1.5, None]
    table = times_table(Measured("m", "awq3", "a card", 50.0, (times,)))
    assert (table.rows[0]["k 16"], table.rows[0]["n_tb"]) == (1.5, 4)
    assert "50.0 GB/s" in table.notes[0]
    assert "--times" in times_table(None).notes[0]


def test_the_tuner_s_choice_comes_from_profiles(home):
    machine = Machine("cpu", "a processor", 2, "t", "n", "a")
    points = (SlowdownPoint(0.0, KChunk()), SlowdownPoint(4.0, KChunk(1, 2, 3, 4)))
    detents = (Detent(0.0, KChunk(), 0.0, 0.0), Detent(5.0, KChunk(1, 2, 3, 4), 4.0, 4.5))
    write_profile(Profile("m", "awq3", machine, {"qkv": 1.0}, points, {"qkv": Launch(4, 8, 1)}, detents))
    write_profile(Profile("other", "awq3", machine, {"qkv": 1.0}, points, {}, detents))
    (home / "home" / "profiles" / "damaged.json").write_text("{")
    (line,) = tuner_table(profiles("m")).rows
    assert line["k qkv/o/gate_up/down"] == "1/2/3/4"
    assert (line["n_tb"], line["target %"], line["measured %"]) == ("4/0/0/0", 5.0, 4.5)
    assert "tune" in tuner_table([]).notes[0]


def test_the_whole_is_written_with_pictures(home):
    out, folder = home / "out", home / "model"
    folder.mkdir()
    save_word_model(tiny_model("llama")[0], folder)
    text = write_words([(7 * i) % 97 for i in range(30)], home / "t.txt")
    args = {"model": str(folder), "text": str(text), "context": 24, "windows": 1, "out": str(out)}
    names = {"bases": ["rtn3", "int8x4"], "controls": ["rtn3"], "widths": ["rtn3"]}
    names["errors"] = ["rtn3", "rtn4"]
    result = dec_tables.decdec(args | names, JobContext.silent())
    keys = [table["key"] for table in result["tables"]]
    assert keys == [
        "figure 4", "figure 5", "figure 12", "figure 13, ppl", "figure 13, kl", "figure 14", "figure 15",
        "figure 16", "table 2", "table 3",
    ]  # fmt: skip
    tables = dict(zip(keys, result["tables"], strict=True))
    assert len(tables["figure 4"]["rows"]) == 3 * 4 * 2
    assert all(0 <= r["best 20 %"] < r["random 20 %"] for r in tables["figure 4"]["rows"])
    assert [r["k 128"] < r["k 0"] for r in tables["figure 13, kl"]["rows"]] == [True, True]
    document = json.loads((out / "decdec-tables.json").read_text())
    assert document["tables"] == result["tables"]
    text = (out / "decdec-tables.md").read_text()
    assert text.startswith("# The DecDEC paper's figures and tables for model\n")
    assert text.count("\n## ") == 10
    pictures = ["errors", "outliers", "perplexity", "selection"]
    assert all((out / f"decdec-{name}.svg").read_text().startswith("<?xml") for name in pictures)
    assert not math.isnan(tables["table 2"]["rows"][0]["as k 8"])
