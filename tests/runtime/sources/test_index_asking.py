"""What pip's own words say of where a wheel is, and what its settings say of the way there."""

from __future__ import annotations

import json
import time

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import index_asking, index_direct, index_pip, index_settings
from runtime.sources.index_asking import Location
from runtime.sources.index_pip import Ended

SILENT = JobContext.silent()
FILE = "t-1.0-py3-none-any.whl"
HASH = "0123456789abcdef" * 4


@pytest.fixture
def pip_says(monkeypatch, tmp_path):
    """Makes pip say something, and leave a report where one is given."""

    def says(text, report=None, code=0):
        def run(arguments, temporary, enough):
            if report is not None:
                (tmp_path / "report.json").write_text(report)
            return Ended(None if enough(text) else code, text)

        monkeypatch.setattr(index_pip, "run", run)

    return says


def report(url, **archive):
    return json.dumps({"version": "1", "install": [{"download_info": {"url": url, "archive_info": archive}}]})


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (report(f"https://host/{FILE}", hashes={"sha256": HASH}), Location(f"https://host/{FILE}", HASH)),
        (report(f"file:///wheels/{FILE}"), Location(f"file:///wheels/{FILE}")),
        (report(f"https://me:secret@host/{FILE}"), None),
        (report(f"ftp://host/{FILE}"), None),
        (report("https://[host/"), None),
        ('{"install": []}', None),
        ("{", None),
    ],
)
def test_the_report_is_believed_where_the_address_is_one_for_us(pip_says, tmp_path, content, found):
    pip_says("", content)
    assert index_asking.ask("t==1.0", tmp_path, SILENT) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (f'https://host:443 "GET /a/{FILE} HTTP/1.1" 200 92', Location(f"https://host/a/{FILE}")),
        (f'http://127.0.0.1:8000 "GET /{FILE} HTTP/1.1" 200 9', Location(f"http://127.0.0.1:8000/{FILE}")),
        (f'http://proxy:80 "GET http://host/{FILE} HTTP/1.1" 200 9', Location(f"http://host/{FILE}")),
        (
            f"Found link https://host/{FILE}#sha256={HASH} (from x)\n"
            f'https://host:443 "GET /{FILE} HTTP/1.1" 200 1',
            Location(f"https://host/{FILE}", HASH),
        ),
        (
            f'https://host:443 "GET /{FILE}?of=a.whl?b HTTP/1.1" 200 1',
            Location(f"https://host/{FILE}?of=a.whl?b"),
        ),
        (
            f'https://host:443 "GET /{FILE} HTTP/1.1" 302 0\n'
            f'https://other:443 "GET /{FILE}?key=1 HTTP/1.1" 200 1',
            Location(f"https://host/{FILE}"),
        ),
        (f'https://host:443 "GET /{FILE}.metadata HTTP/1.1" 200 92', None),
        (f'https://host:443 "GET /{FILE} HTTP/1.1" 401 0', None),
        ("", None),
    ],
)
def test_pip_s_request_for_the_wheel_is_overheard(pip_says, tmp_path, said, found):
    pip_says(said)
    assert index_asking.ask("t==1.0", tmp_path, SILENT) == found


@pytest.mark.parametrize(
    "said",
    [
        'https://host:443 "GET /' + ".whl?" * 50_000,
        'https://host:443 "GET /' + ".whl" * 60_000 + ' HTTP/1.1" 404',
        "http://" * 35_000,
        "http://" + "a" * 250_000,
        ('http://a:1 "GET /' + ".whl?" * 790 + "\n") * 60,
    ],
)
def test_no_long_line_of_an_index_makes_listening_slow(pip_says, tmp_path, said):
    pip_says(said)
    began = time.thread_time()
    assert index_asking.ask("t==1.0", tmp_path, SILENT) is None
    assert time.thread_time() - began < 0.5


def test_an_index_that_has_it_not_is_an_answer_and_another_failure_is_none(pip_says, tmp_path):
    pip_says("ERROR: No matching distribution found for t==1.0", code=1)
    assert isinstance(index_asking.ask("t==1.0", tmp_path, SILENT), DecdecError)
    pip_says("ERROR: Could not find an activated virtualenv (required).", code=3)
    assert index_asking.ask("t==1.0", tmp_path, SILENT) is None


def test_pip_is_ended_when_it_fetches_more_than_metadata(pip_says, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    ended = []
    pip_says("")
    run = index_pip.run
    monkeypatch.setattr(index_pip, "run", lambda *of: ended.append(run(*of)) or ended[-1])
    for size in (1 << 20, (1 << 20) + 1):
        (tmp_path / "tmp" / "wheel").write_bytes(bytes(size))
        assert index_asking.ask("t==1.0", tmp_path, SILENT) is None
    assert [how.code for how in ended] == [0, None]


def test_an_address_is_not_shown_with_its_location():
    assert "key" not in repr(Location("https://host/x.whl?key=1"))


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("", index_settings.Connection()),
        ("global.proxy='http://a:1'\n:env:.proxy='http://b:2'\n", index_settings.Connection("http://b:2")),
        (":env:.cert='/c'\nglobal.cert='/d'\nglobal.index-url='x'", index_settings.Connection("", "/c")),
        ("install.no-warn-script-location='true'", index_settings.Connection()),
        ("global.client-cert='/c'", None),
        ("download.index-url='https://host/simple'", None),
        ("install.proxy='http://a:1'", None),
    ],
)
def test_settings_of_the_way_to_the_index(pip_says, tmp_path, monkeypatch, listed, found):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    pip_says(listed)
    assert index_settings.connection(tmp_path, SILENT) == found


def test_settings_that_cannot_be_read_or_used_are_left_to_pip(pip_says, tmp_path):
    pip_says("ERROR: Configuration file could not be loaded.", code=1)
    assert index_settings.connection(tmp_path, SILENT) is None
    assert index_settings.client_maker(index_settings.Connection("gopher://x:1")) is None
    assert index_settings.client_maker(index_settings.Connection("", str(tmp_path / "none.pem"))) is None


def test_a_file_is_used_where_it_lies(tmp_path):
    wheel = tmp_path / "a folder with spaces" / FILE
    wheel.parent.mkdir()
    wheel.touch()
    assert index_direct.local_path(Location(wheel.as_uri())) == wheel
    assert index_direct.local_path(Location((tmp_path / "none").as_uri())) is None
    assert index_direct.local_path(Location(f"https://host/{FILE}")) is None
