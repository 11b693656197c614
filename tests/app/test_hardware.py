"""Any report becomes rows."""

from app.hardware import Row, rows


def test_rows_of_every_shape():
    report = {
        "devices": [
            {
                "name": "cpu",
                "kind": "x",
                "usable": True,
                "memory_bytes": 8_000_000_000,
                "note": "the only one",
            },
            {"name": "cuda", "usable": False, "why": "no\nNVIDIA\x1b driver"},
        ],
        "versions": {"torch": "2.13", "triton": None},
        "paths": {"home": "/h"},
        "disk_free_bytes": 5_000_000_000,
        "gpu": "",
        "notes": ["plain"],
    }
    assert rows(report) == [
        Row("cpu", "memory 8.00 GB, the only one", True),
        Row("cuda", "no NVIDIA␛ driver", False),
        Row("versions", "torch 2.13"),
        Row("paths", "home /h"),
        Row("disk free", "5.00 GB"),
        Row("notes", "plain"),
    ]


def test_large_groups_get_a_row_for_each_fact():
    report = {"sizes": {"models_bytes": 1000, "b": 1, "c": "x", "d": True}}
    assert rows(report) == [
        Row("sizes: models", "1.00 kB"),
        Row("sizes: b", "1"),
        Row("sizes: c", "x"),
        Row("sizes: d", "yes"),
    ]


def test_speeds_and_fixes():
    report = {"devices": [{"name": "cpu", "memory_gb_s": 24.084, "usable": False, "fix": "do\nthis"}]}
    assert rows(report) == [Row("cpu", "memory 24.1 GB/s", False, "do this")]
