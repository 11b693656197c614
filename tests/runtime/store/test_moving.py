"""Models move whole or not at all, and never from under somebody's feet."""

import os
import subprocess
import sys
import textwrap

import pytest

from runtime import locations
from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from runtime.store import building, in_use, models, move_record, moving, publish
from runtime.store.locks import exclusive


@pytest.fixture
def source():
    """A model, a profile, a link, and things that stay."""
    with building("m") as staging:
        (staging / "weights.bin").write_bytes(os.urandom(3 << 20))
        publish("m", staging, {"source": "a test", "bits_per_weight": 6.4})
    home = locations.home()
    (home / "profiles").mkdir()
    (home / "profiles" / "p.json").write_text("{}")
    (home / "profiles" / "link").symlink_to("p.json")
    (home / "pulls").mkdir()
    (home / "pulls" / "x.json").write_text("{}")
    (home / "settings.toml").write_text("theme = 'x'")
    (home / "models" / ".weights.bin.0123abcd.part").write_text("half")
    return home


@pytest.fixture
def two_disks(monkeypatch):
    monkeypatch.setattr(moving, "_same_disk", lambda source, target: False)


def tree(home):
    """Every file with its content, and every link; what stays behind is left out."""
    found = {}
    for path in sorted(home.rglob("*")) if home.exists() else ():
        name = path.relative_to(home).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file() and name.split("/")[0] in moving.FOLDERS and not name.endswith(".part"):
            found[name] = path.read_bytes()
    return found


def go(source, target, switch=lambda: None, ctx=None):
    moving.move(source, target, switch, ctx or JobContext.silent("move"))


@pytest.mark.parametrize("disks", [1, 2])
def test_everything_of_ours_moves_and_the_rest_stays(source, tmp_path, disks, monkeypatch, request):
    if disks == 2:
        request.getfixturevalue("two_disks")
    before, target, seen = tree(source), tmp_path / "far" / "away", []
    go(source, target, lambda: seen.append(tree(target) == before))
    assert seen == [True]
    assert tree(target) == before
    assert tree(source) == {}
    assert (source / "settings.toml").exists()
    assert not (target / "settings.toml").exists()
    assert not (target / ".moving").exists()
    monkeypatch.setenv("DECDEC_CACHE", str(target))
    assert [model.name for model in models()] == ["m"]
    go(target, source)
    assert tree(source) == before


def stopped_after(steps):
    left = iter(range(steps))
    return JobContext("move", lambda event: None, lambda: next(left, None) is None)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("disks", [1, 2])
def test_a_stop_leaves_everything_as_it_was(source, tmp_path, steps, disks, request):
    if disks == 2:
        request.getfixturevalue("two_disks")
    elif steps > 1:
        pytest.skip("two folders, two looks")
    before, target = tree(source), tmp_path / "far" / "away"
    with pytest.raises(Interrupted):
        go(source, target, ctx=stopped_after(steps))
    assert tree(source) == before
    assert not (tmp_path / "far").exists()


@pytest.mark.parametrize("disks", [1, 2])
def test_a_switch_that_fails_leaves_everything_as_it_was(source, tmp_path, disks, request):
    if disks == 2:
        request.getfixturevalue("two_disks")

    def fail():
        raise DecdecError("Settings could not be saved")

    before, target = tree(source), tmp_path / "there"
    target.mkdir()
    with pytest.raises(DecdecError, match="Settings"):
        go(source, target, fail)
    assert tree(source) == before
    assert list(target.iterdir()) == []


def test_a_full_disk_leaves_everything_as_it_was(source, tmp_path, two_disks, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    before, target = tree(source), tmp_path / "there"
    monkeypatch.setattr(moving.os, "fsync", full)
    with pytest.raises(DecdecError, match=r"disk of .*there is full"):
        go(source, target)
    assert tree(source) == before
    assert not target.exists()


def test_what_is_damaged_on_its_way_does_not_arrive(source, tmp_path, two_disks, monkeypatch):
    def damaging(path, there):
        there.write_bytes(b"x" + there.read_bytes()[1:])

    before, target = tree(source), tmp_path / "there"
    monkeypatch.setattr(moving.shutil, "copystat", damaging)
    with pytest.raises(DecdecError, match="damaged on its way"):
        go(source, target)
    assert tree(source) == before
    assert not target.exists()


def test_space_is_asked_for_before_the_first_byte(source, tmp_path, two_disks, monkeypatch):
    usage = moving.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(moving.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(DecdecError, match=r"70\.\d MB are needed and 1\.0 kB are free"):
        go(source, tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_where_it_cannot_go(source, tmp_path):
    for target, why in [
        (source, "there already"),
        (source / "models", "within each other"),
        (source.parent, "within each other"),
    ]:
        with pytest.raises(DecdecError, match=why):
            go(source, target)
    (tmp_path / "other" / "models" / "x").mkdir(parents=True)
    with pytest.raises(DecdecError, match="holds models already"):
        go(source, tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(DecdecError, match="failed"):
        go(source, tmp_path / "file" / "below")
    assert tree(source)


def test_a_folder_with_other_things_gets_one_of_ours_in_it(source, tmp_path):
    (tmp_path / "large").mkdir()
    assert moving.place(tmp_path / "large") == tmp_path / "large"
    (tmp_path / "large" / "photo").write_text("")
    assert moving.place(tmp_path / "large") == tmp_path / "large" / "decdec-chat"
    assert moving.place(locations.usual_home()) == locations.usual_home()
    assert moving.held_bytes(source) > 3 << 20


HOLDER = """
import sys
from runtime.store import in_use, locks
what = sys.argv[1]
if what == "engine":
    in_use.take_part()
    print("held", flush=True)
    sys.stdin.read()
else:
    with locks.exclusive("model-m", "Work on m"):
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.mark.parametrize(("what", "why"), [("engine", "works with them"), ("model", "m is being worked on")])
def test_nothing_moves_while_another_process_works(source, tmp_path, what, why):
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), what]
    before = tree(source)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline().strip() == b"held"
        with pytest.raises(DecdecError, match=why):
            go(source, tmp_path / "there")
        other.stdin.close()
        other.wait(10)
    assert tree(source) == before
    go(source, tmp_path / "there")
    assert tree(tmp_path / "there") == before


def test_nobody_begins_while_things_move(source, tmp_path, monkeypatch):
    monkeypatch.setattr(in_use, "_place", None)
    refused = []

    def try_all():
        for begin in (in_use.take_part, lambda: exclusive("model-x", "Work on x").__enter__()):
            with pytest.raises(DecdecError, match="being moved"):
                begin()
            refused.append(begin)

    go(source, tmp_path / "there", try_all)
    assert len(refused) == 2
    in_use.take_part()
    in_use._place.release()


def test_a_folder_that_cannot_be_locked_is_used_all_the_same(source, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(in_use, "_place", None)
    monkeypatch.setattr(in_use, "_free_place", refuse)
    in_use.take_part()


@pytest.mark.parametrize("name", ["models/comfy", "downloads/thesis"])
def test_what_others_keep_in_the_chosen_folder_is_not_carried_off(source, tmp_path, name):
    (source / name).mkdir(parents=True)
    (source / "models" / ".DS_Store").write_text("x")
    before = tree(source)
    with pytest.raises(DecdecError, match=f"also holds {name.split('/')[1]}, which is not"):
        go(source, tmp_path / "there")
    assert tree(source) == before
    assert not (tmp_path / "there").exists()


def test_a_home_whose_old_disk_is_not_there_waits_for_it(tmp_path):
    home, gone = tmp_path / "new", tmp_path / "not mounted"
    move_record.atomic.write_json(home / move_record.ARRIVED, move_record.Arrived(str(gone)))
    move_record.settle(home)
    assert not gone.exists()
    assert (home / move_record.ARRIVED).exists()
    gone.mkdir()
    move_record.settle(home)
    assert not (home / move_record.ARRIVED).exists()
