"""A model's record leads back to where it came from."""

import pytest

from runtime import locations
from runtime.sources import catalogue, resolve
from runtime.sources.recorded import kept_of, source_of

DEFAULT = catalogue.default()


@pytest.mark.parametrize(
    ("name", "record", "source"),
    [
        ("owner--m", {"kind": "hub", "repo": "owner/m"}, "owner/m"),
        ("m", {"kind": "gguf", "path": "/x/m.gguf"}, "/x/m.gguf"),
        ("m", {"kind": "folder", "path": "/x/m"}, "/x/m"),
        (DEFAULT.name, {"kind": "wheel", "package": "p", "version": "1"}, DEFAULT.name),
        ("unknown", {}, ""),
    ],
)
def test_source(name, record, source):
    assert source_of(name, record) == source


def test_the_download_is_found_where_sources_keep_it(home):
    for wanted in (DEFAULT.name, "owner/m"):
        source = resolve(wanted)
        assert kept_of(source.record) is None, "nothing was fetched yet"
        folder = source._folder
        folder.mkdir(parents=True)
        assert kept_of(source.record) == folder
        assert folder.is_relative_to(locations.downloads())
    assert kept_of({"kind": "folder", "path": str(home)}) is None, "a user's folder is never ours"
    assert kept_of({}) is None
