"""The hub library's own cache and token file, as other programs leave them; and what offline is ours."""

import msgspec
import pytest

from runtime.download import RemoteFile
from runtime.download.errors import UnreachableError
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import hub_api
from runtime.sources.hub import HubSource
from runtime.sources.hub_api import Listing

COMMIT, OTHER = "c" * 40, "d" * 40
CONTENT = {"config.json": b"{}", "model.safetensors": b"weights", "tokenizer.json": b"{ }"}
LISTING = Listing(COMMIT, tuple(RemoteFile(name, len(data)) for name, data in CONTENT.items()), "o/m")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Puts files into the library's cache, of a commit that it then knows as main."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def put(*names, commit=COMMIT, repo="o/m"):
        root = tmp_path / "hf" / f"models--{repo.replace('/', '--')}"
        snapshot = root / "snapshots" / commit
        for folder in (root / "refs", root / "blobs", snapshot):
            folder.mkdir(parents=True, exist_ok=True)
        (root / "refs" / "main").write_text(commit)
        for name in names:
            (root / "blobs" / name).write_bytes(CONTENT[name])
            (snapshot / name).symlink_to(root / "blobs" / name)
        return snapshot

    return put


@pytest.fixture
def downloaded(monkeypatch):
    """What is downloaded while the hub lists its files."""
    asked = []

    def download(files, folder, transport, ctx):
        folder.mkdir(parents=True)
        for file in files:
            asked.append(file.name)
            (folder / file.name).write_bytes(CONTENT[file.name])

    monkeypatch.setattr("runtime.sources.hub.download_all", download)
    monkeypatch.setattr(hub_api, "list_files", lambda repo, tick: LISTING)
    monkeypatch.setattr(hub_api, "transport", lambda repo, commit: None)
    return asked


def fetch(repo="o/m"):
    return HubSource(repo.replace("/", "--"), repo, repo).fetch(JobContext.silent())


def keep(listing, *names, repo="o/m"):
    """Our own folder of a repository, as an earlier run left it."""
    root = HubSource("m", "m", repo)._folder
    (root / listing.commit).mkdir(parents=True)
    (root / "listing.json").write_bytes(msgspec.json.encode(listing))
    for name in names:
        (root / listing.commit / name).write_bytes(CONTENT[name])
    return root / listing.commit


def test_weights_that_another_program_fetched_alone_are_no_whole_model(cache, downloaded, home):
    snapshot = cache("config.json", "model.safetensors")
    folder = fetch()
    assert folder.is_relative_to(home)
    assert downloaded == list(CONTENT)
    assert (folder / "tokenizer.json").read_bytes() == CONTENT["tokenizer.json"]
    assert len(list(snapshot.iterdir())) == 2, "the library's cache is not ours"


def test_a_cache_that_has_every_file_is_used_and_one_of_a_wrong_size_is_not(cache, downloaded):
    snapshot = cache(*CONTENT)
    assert fetch() == snapshot
    assert downloaded == []
    (snapshot / "tokenizer.json").resolve().write_bytes(b"")
    assert fetch() != snapshot


def test_the_library_is_asked_for_what_we_would_fetch_alone(cache, monkeypatch):
    import huggingface_hub

    asked, snapshot = [], cache(*CONTENT)
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda *of, **how: asked.append(how) or snapshot
    )
    assert hub_api.in_hub_cache("o/m", LISTING) == snapshot
    assert asked == [{"revision": COMMIT, "allow_patterns": list(CONTENT), "local_files_only": True}]


def test_offline_too_a_cache_without_a_listed_file_is_not_used(cache):
    cache("config.json", "model.safetensors")
    keep(LISTING, "config.json")
    with pytest.raises(UnreachableError, match="HF_HUB_OFFLINE is set"):
        fetch()


def test_offline_a_cache_of_another_commit_or_of_unknown_files_is_used(cache):
    snapshot = cache("config.json", "model.safetensors", commit=OTHER)
    assert fetch() == snapshot
    keep(LISTING, "config.json")
    assert fetch() == snapshot


def test_offline_the_listed_commit_goes_before_the_one_that_the_cache_knows_as_main(cache):
    snapshot = cache(*CONTENT)
    cache("config.json", "model.safetensors", commit=OTHER)
    keep(LISTING)
    assert fetch() == snapshot


@pytest.mark.parametrize("repo", ["x/foo--bar", "x/foo..bar", "x/" + "a" * 120, "x/foo.git"])
def test_offline_a_name_that_the_library_does_not_accept_is_one_that_is_not_here(cache, repo):
    with pytest.raises(UnreachableError, match="is not on this machine: HF_HUB_OFFLINE is set"):
        fetch(repo)


def test_offline_another_repository_s_files_are_not_taken_for_this_one_s(cache):
    folder = keep(msgspec.structs.replace(LISTING, repo="owner/name"), *CONTENT, repo="owner/name")
    assert fetch("owner/name") == folder
    with pytest.raises(UnreachableError):
        fetch("owner/name_")


def test_offline_files_that_an_older_version_fetched_are_used(cache):
    folder = keep(msgspec.structs.replace(LISTING, repo=""), *CONTENT)
    assert fetch() == folder


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"\xff\xfehf"), lambda path: path.mkdir()])
def test_a_token_that_cannot_be_read_is_one_sentence(tmp_path, monkeypatch, make):
    from huggingface_hub import constants

    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    make(tmp_path / "token")
    with pytest.raises(DecdecError, match=r"token cannot be used: .*token cannot be read as text") as caught:
        hub_api.settings("It is not here")
    assert "\n" not in caught.value.sentence
