"""Measurements that fail alone, machine code counted, other cards forecast."""

import json

import pytest
import torch
from safetensors.torch import save_file

from runtime.bench import block_file, dfloat, forecast, sass
from runtime.bench.gpu_report import GpuReport

LISTING = """
.L_x_0:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E.128 R4, [R2.64] ;
        /*0020*/              @!P2 LOP3.LUT R5, R4, 0xf, RZ, 0xc0, !PT ;
        /*0030*/                   IMMA.16832.U8.S8 R8, R4.ROW, R6.COL, R8 ;
        /*0040*/               @P0 BRA `(.L_x_1) ;
.L_x_2:
        /*0050*/                   IADD3 R1, R1, 0x1, RZ ;
        /*0060*/               @P1 BRA `(.L_x_2) ;
        /*0070*/               @P1 BRA `(.L_x_0) ;
.L_x_3:
        /*0080*/                   BRA `(.L_x_3);
"""


def report(tmp_path, seconds=60.0):
    return GpuReport(tmp_path, {"GPU": "none"}, seconds)


def test_a_section_that_fails_keeps_its_rows_and_lets_others_run(tmp_path):
    def broken():
        yield {"a": 1}
        raise RuntimeError("out of luck\nand more")

    made = report(tmp_path)
    made.run("first", broken)
    made.run("second", lambda: [{"a": 2, "b": None}, {"c": 3}])
    document = json.loads((tmp_path / "int8x-gpu.json").read_text())
    assert document["rows"] == {"first": [{"a": 1}], "second": [{"a": 2, "b": None}, {"c": 3}]}
    assert document["failures"] == {"first": "RuntimeError: out of luck"}
    assert set(document["seconds"]) == {"first", "second"}
    text = (tmp_path / "int8x-gpu.md").read_text()
    assert "| a | b | c |" in text
    assert "first failed: RuntimeError: out of luck" in text


def test_rows_are_on_disk_before_the_next_is_made(tmp_path):
    def rows():
        yield {"a": 1}
        assert json.loads((tmp_path / "int8x-gpu.json").read_text())["rows"] == {"s": [{"a": 1}]}
        yield {"a": 2}

    made = report(tmp_path)
    made.run("s", rows)
    assert (made.failures, len(made.rows["s"])) == ({}, 2)


def test_nothing_begins_after_the_deadline(tmp_path):
    made = report(tmp_path, 0.0)
    made.run("late", lambda: [{"a": 1}])
    assert made.rows == {}
    assert "no time" in made.failures["late"]


def test_only_innermost_loops_with_tensor_cores_count():
    assert sass.loops(LISTING) == [sass.Loop(4, 1)]
    assert sass.loops(LISTING)[0].per_weight == 4 / 16


def test_forecast_takes_the_slower_of_memory_and_arithmetic():
    weights, bits = 28672 * 4096, 5.0
    slow, fast = (
        list(forecast.forecast_rows([{"format": "f", "weights": weights, "bits": bits, "us": us}]))
        for us in (1000.0, 0.001)
    )
    for row, card in zip(fast, forecast.CARDS, strict=True):
        assert row["x bf16"] == pytest.approx(16 / 5)
        assert row["memory us"] == pytest.approx(weights * 5 / 8 / (0.9 * card.gb_s * 1e3))
    h200 = forecast.H200
    for row, card in zip(slow, forecast.CARDS, strict=True):
        assert row["arithmetic us"] == pytest.approx(1000 * h200.sms * h200.ghz / (card.sms * card.ghz))
        assert row["x bf16"] < 1
    # A warp's 32 lanes in 4 sub-cores of an SM: by hand for one SM at 1 GHz.
    one = forecast.Card("one", 1, 1.0, 1.0, "")
    assert forecast.cycles_per_32_weights(8.0, 1000 * 32, one) == pytest.approx(8000 * 4 / 1000)


def test_block_files_are_read_as_they_were_written(tmp_path):
    weights = {"one": torch.randn(4, 8), "two": torch.randn(2, 8)}
    save_file(weights, tmp_path / "b.safetensors")
    block_file.write_block(tmp_path / "b.safetensors", tmp_path / "c.safetensors")
    found = dict(block_file.block_linears(tmp_path / "c.safetensors"))
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weight) for name, weight in weights.items())


def test_a_missing_package_is_said():
    if not dfloat.missing():
        pytest.skip("dfloat11 is installed here")
    assert "dfloat11" in dfloat.missing()
    with pytest.raises(ImportError, match="dfloat11"):
        dfloat.compress(torch.zeros(2, 2, dtype=torch.bfloat16))


def test_only_the_sections_asked_for_run(tmp_path):
    report = GpuReport(tmp_path, {}, 60.0, only=("products", "token"))
    for name in ("products", "prepare", "token Llama"):
        report.run(name, lambda name=name: [{"is": name}])
    assert list(report.rows) == ["products", "token Llama"]
