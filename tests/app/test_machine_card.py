"""The machine's card at every stage of what is known."""

from app.hardware import Row
from app.machine_card import card

CPU = {"name": "Some CPU", "kind": "cpu", "usable": True, "cores": 8}
GPU = {
    "name": "NVIDIA RTX",
    "kind": "cuda:0",
    "usable": True,
    "memory_bytes": 6_000_000_000,
    "free_bytes": 5_200_000_000,
    "compute_capability": "8.9",
    "driver": "550.1",
}
NO_GPU = {"name": "NVIDIA GPU", "kind": "cuda", "usable": False, "why": "no driver", "fix": "install one"}


def texts(report, measured=True):
    return {row.title: row.text for row in card(report, measured)}


def test_at_once_there_is_what_the_system_knows():
    report = {
        "devices": [CPU, {"name": "NVIDIA RTX", "kind": "cuda:0"}],
        "memory": {"total_bytes": 16_000_000_000, "available_bytes": 9_000_000_000},
        "disk": {"folder": "/models", "free_bytes": 50_000_000_000},
    }
    assert card(report, measured=False) == [
        Row("Processor", "Some CPU · 8 cores · memory speed measuring…", True),
        Row("GPU", "NVIDIA RTX"),
        Row("RAM", "16.0 GB, 9.00 GB free"),
        Row("Disk", "50.0 GB free · /models"),
    ]


def test_a_gpu_with_its_memory_and_its_link():
    report = {"devices": [CPU, GPU], "answering": "cuda:0"}
    assert texts(report, measured=False)["PCIe"] == "measuring…"
    assert texts(report, measured=False)["VRAM"] == "6.00 GB, 5.20 GB free · speed measuring…"
    report = {**report, "devices": [CPU, {**GPU, "memory_gb_s": 192.0, "link_gb_s": 12.0}]}
    found = texts(report)
    assert found["GPU"] == "NVIDIA RTX · compute 8.9 · driver 550.1"
    assert found["VRAM"] == "6.00 GB, 5.20 GB free · 192 GB/s"
    assert found["PCIe"] == "12 GB/s from page-locked memory · VRAM is 16 times as fast"
    assert found["Processor"] == "Some CPU · 8 cores", "it does not answer"


def test_a_link_that_could_not_be_measured_is_told():
    assert texts({"devices": [GPU], "answering": "cuda:0"})["PCIe"] == "could not be measured"


def test_a_gpu_that_does_not_answer_is_not_measured():
    found = texts({"devices": [CPU, GPU], "answering": "cpu"})
    assert "PCIe" not in found
    assert found["VRAM"] == "6.00 GB, 5.20 GB free"


def test_a_processor_that_answers_shows_what_it_reads():
    measured = {**CPU, "memory_gb_s": 24.1, "int4_gb_s": 12.9, "instructions": "AVX512"}
    assert texts({"devices": [measured]})["Processor"] == (
        "Some CPU · 8 cores · AVX512 · memory 24.1 GB/s · 4-bit products 12.9 GB/s"
    )


def test_no_gpu_with_cause_and_fix():
    row = card({"devices": [CPU, NO_GPU]}, True)[1]
    assert (row.title, row.text, row.ok, row.fix) == ("GPU", "NVIDIA GPU · no driver", False, "install one")


def test_what_can_be_locked():
    memory = {"total_bytes": 16_000_000_000, "pinnable_bytes": 8_000_000_000, "lock_limit_bytes": 8_388_608}
    found = texts({"memory": memory})
    assert found["Pinning"] == "8.00 GB for a GPU to read · the limit of 8.39 MB (ulimit -l) is for others"
    found = texts({"memory": {**memory, "lock_limit_bytes": None}})
    assert found["Pinning"] == "8.00 GB for a GPU to read"


def test_checks_that_are_well_and_say_nothing_new_are_left_out():
    checks = [
        {"name": "folder", "ok": True, "note": "/home"},
        {"name": "device", "ok": True, "note": "answers come from CPU"},
        {"name": "Triton", "ok": True, "note": "with gcc"},
    ]
    assert list(texts({"devices": [CPU, NO_GPU], "checks": checks})) == ["Processor", "GPU", "Device"]
    assert "Triton" in texts({"devices": [CPU, GPU], "checks": checks})


def test_checks_that_are_not_well_say_what_to_do():
    checks = [{"name": "Triton", "ok": False, "note": "no C compiler", "fix": "install gcc"}]
    assert card({"devices": [GPU], "checks": checks}, True)[-1] == (
        Row("Triton", "no C compiler", False, "install gcc")
    )
    assert card({"checks": checks}, True) == [], "nobody needs it"


def test_reports_of_other_shapes_and_hostile_names():
    assert card({}, True) == []
    assert card({"devices": "none", "checks": [1], "memory": 3, "disk": {}}, True) == []
    assert card({"devices": [{"name": "x\x1b[1m", "usable": True, "cores": 2}]}, True) == [
        Row("x␛[1m", "cores 2", True)
    ]
