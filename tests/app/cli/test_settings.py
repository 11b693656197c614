"""`decdec-chat settings` shows what holds, and opens the file."""

import json
import sys

from click.testing import CliRunner

from app import settings_file
from app.cli.settings import settings
from app.options import OPTIONS
from app.settings import Settings
from runtime import locations


def run(*arguments):
    done = CliRunner().invoke(settings, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout, done.stderr


def test_everything_is_listed_with_what_goes_before_it(monkeypatch):
    monkeypatch.setenv("DECDEC_DEVICE", "cuda:3")
    settings_file.keep(Settings(), Settings(theme="nord", device="cpu"))
    out, _ = run()
    assert str(locations.settings_file()) in out
    assert all(option.name in out for option in OPTIONS)
    assert next(line for line in out.splitlines() if line.startswith("theme")).split() == [
        "theme",
        "nord",
        "here",
    ]
    assert "cuda:3, by DECDEC_DEVICE" in out


def test_one_json_document_and_trouble_on_stderr():
    path = locations.settings_file()
    path.parent.mkdir(parents=True)
    path.write_text('theme = "nord"\nkv_bits = 3\n')
    out, err = run("--json")
    document = json.loads(out)
    assert document["settings"]["theme"] == "nord"
    assert document["settings"]["kv_bits"] == 16
    assert document["path"] == str(path)
    assert "kv_bits" in err


def test_the_editor_gets_a_file_that_explains_itself(tmp_path, monkeypatch):
    editor = tmp_path / "editor.py"
    editor.write_text("import sys, pathlib\np = pathlib.Path(sys.argv[1])\n"
                      "p.write_text(p.read_text().replace('# context = 4096', 'context = 1'))\n")  # fmt: skip
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    out, err = run("--edit")
    assert "context" in err
    assert "at least 2 tokens" in err
    assert "# temperature = 0.2" in locations.settings_file().read_text()
    assert "not there yet" not in out
