"""Every module that writes, and what causes its disk to refuse: an action of the sweep, or another test."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WRITES = re.compile(
    r"open\([^)]*[\"'](w|wb|r\+b|ab|a|w\+b|x|xb|wt)[\"']|write_text\(|write_bytes\(|write_json\(|replacing\("
    r"|os\.replace|os\.rename|mkdir\(|copyfile|copytree|savefig|TemporaryDirectory|mkdtemp"
    r"|temporary_folder\(|FileHandler\(|sqlite3\.connect|FileLock\("
)
REPORT = "a report of measurements, whole or not at all by runtime/store/atomic.py"
SITES = {
    "app/history/database.py": "Chat",
    "app/history/files.py": "ExportChat",
    "app/history/schema.py": "Chat",
    "app/library/records.py": "NotePull",
    "app/settings_file.py": "KeepSettings, BeginSettings, ConvertSettings",
    "app/unexpected.py": "a log: told or left out",
    "kernels/jit.py": "tests/kernels/test_jit.py",
    "runtime/bench/dec_jobs.py": REPORT,
    "runtime/bench/dec_tables.py": REPORT,
    "runtime/bench/dec_tables_quality.py": REPORT,
    "runtime/bench/decode/agreement.py": REPORT,
    "runtime/bench/decode/jobs.py": REPORT,
    "runtime/bench/decode/lookup.py": REPORT,
    "runtime/bench/gpu_report.py": REPORT,
    "runtime/bench/host_rows.py": "a file for a while",
    "runtime/bench/jobs.py": REPORT,
    "runtime/bench/long_run/__main__.py": REPORT,
    "runtime/bench/long_run/vocabulary.py": "a file for a while",
    "runtime/bench/plots.py": "Drawn",
    "runtime/bench/sass.py": "a file for a while",
    "runtime/calibration/continuations.py": "as Prepared",
    "runtime/checkpoint/gguf_tokenizer.py": "Scored",
    "runtime/checkpoint/tokenizer_files.py": "Prepared, Exported",
    "runtime/client/process.py": "a log: left out",
    "runtime/download/partial.py": "tests/runtime/download",
    "runtime/evaluate/jobs.py": "Scored",
    "runtime/export/destination.py": "Exported",
    "runtime/export/jobs.py": "Exported",
    "runtime/export/shards.py": "Exported",
    "runtime/int8x/encoding.py": "Encoded",
    "runtime/int8x/reader.py": "Exported",
    "runtime/int8x/shards.py": "Prepared, Encoded",
    "runtime/int8x/writer.py": "Prepared, Encoded",
    "runtime/lowbit/files.py": "Prepared, OneBaseMore",
    "runtime/pictures.py": "Drawn",
    "runtime/prepare/bases.py": "OneBaseMore",
    "runtime/prepare/pipeline.py": "Prepared",
    "runtime/prepare/text.py": "Prepared",
    "runtime/sensitivity/stored.py": "Prepared",
    "runtime/server/logs.py": "a log: left out",
    "runtime/sources/carried.py": "tests/runtime/sources",
    "runtime/sources/hub.py": "tests/runtime/sources/test_full_disk.py",
    "runtime/sources/index_pip.py": "tests/runtime/sources",
    "runtime/sources/index_wheel.py": "tests/runtime/sources",
    "runtime/sources/wheel.py": "tests/runtime/sources",
    "runtime/store/atomic.py": "everything",
    "runtime/store/building.py": "MakeModel, ExtendModel",
    "runtime/store/in_use.py": "MoveModels",
    "runtime/store/integrity.py": "ExtendModel",
    "runtime/store/locks.py": "MakeModel",
    "runtime/store/manifest.py": "MakeModel",
    "runtime/store/move_record.py": "MoveModels, MoveBack",
    "runtime/store/moving.py": "MoveModels, MoveBack",
    "runtime/store/records.py": "tests/runtime/store/test_records.py",
    "runtime/store/settling.py": "ExtendModel",
    "runtime/store/temporary.py": "Scored",
    "runtime/tasks/records.py": "Answers",
    "runtime/text/encoder.py": "Scored",
    "runtime/tuner/profile.py": "Profile",
    "runtime/worker/failures.py": "a log: told or left out",
}


def found() -> set[str]:
    """Modules of the program that write."""
    sources = (path for folder in ("app", "runtime", "kernels") for path in (ROOT / folder).rglob("*.py"))
    return {p.relative_to(ROOT).as_posix() for p in sources if WRITES.search(p.read_text("utf-8"))}
