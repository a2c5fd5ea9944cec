"""Test the file operations that a warehouse requires: atomic, also with concurrent writers."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iosig.warehouse import releases
from iosig.warehouse.store import files as files_module, objects
from iosig.warehouse.store.files import ExistsError, FileChecksum, Files, Folder, LockHeldError
from iosig.warehouse.store.objects import Objects
from tests.servers import SeaweedFs, seaweedfs


@pytest.fixture(scope="module")
def object_store() -> Iterator[SeaweedFs]:
    """Start an object store that all tests of this module share."""
    with seaweedfs() as started:
        yield started


@pytest.fixture(params=["folder", pytest.param("objects", marks=pytest.mark.slow)])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return files in a folder and in an object store, which must behave equally."""
    if request.param == "folder":
        return Folder(tmp_path)
    for name, value in request.getfixturevalue("object_store").environment.items():
        monkeypatch.setenv(name, value)
    return Objects(f"s3://iosig/{uuid.uuid4().hex}", tmp_path)


def test_missing_file_has_no_content_and_no_mark(files: Files) -> None:
    assert files.content("a/b") is None
    assert files.mark("a/b") == []
    with pytest.raises(FileNotFoundError):
        files.open("a/b")
    assert files.matching("a/*") == []
    files.remove("a/*")


def test_file_is_replaced_atomically_and_its_mark_changes(files: Files) -> None:
    files.put("a/b", b"one")
    before = files.mark("a/b")
    files.put("a/b", b"two")
    assert files.content("a/b") == files.open("a/b").read() == b"two"
    assert files.mark("a/b") != before


def test_star_does_not_match_slash_or_temporary_files(files: Files, tmp_path: Path) -> None:
    for name in ("a/1.json", "a/2.json", "a/b/3.json"):
        files.put(name, b"")
    (tmp_path / "a").mkdir(exist_ok=True)
    (tmp_path / "a" / ".4.json.1234.tmp").write_bytes(b"")
    assert files.matching("a/*") == ["a/1.json", "a/2.json"]
    assert files.matching("*/*/*.json") == ["a/b/3.json"]


def test_swap_succeeds_only_with_current_content(files: Files) -> None:
    assert not files.swap("pointer", b"one", b"two")
    assert files.swap("pointer", None, b"one")
    assert not files.swap("pointer", None, b"two")
    assert files.swap("pointer", b"one", b"two")
    assert files.content("pointer") == b"two"


def test_concurrent_swaps_give_each_number_once(files: Files) -> None:
    def following(_: int) -> int:
        while True:
            before = files.content("number")
            number = int(before or b"0") + 1
            if files.swap("number", before, b"%d" % number):
                return number

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(following, range(60))) == list(range(1, 61))


def test_filled_file_is_read_only(files: Files, tmp_path: Path) -> None:
    with files.write_file("a/b") as path:
        path.write_bytes(b"x")
        assert files.content("a/b") is None
    assert files.content("a/b") == b"x"
    if isinstance(files, Folder):
        assert not (tmp_path / "a" / "b").stat().st_mode & 0o222


def test_gathered_folder_is_atomic_and_created_once(files: Files) -> None:
    def gather(name: bytes) -> None:
        with files.write_folder("landed/1", "last") as folder:
            (folder / "part").write_bytes(name)
            assert files.matching("landed/*/*") in ([], ["landed/1/last", "landed/1/part"])
            if name == b"bad":
                raise KeyError
            (folder / "last").write_bytes(b"")

    with pytest.raises(KeyError):
        gather(b"bad")
    assert files.matching("landed/*/*") == []
    gather(b"good")
    with pytest.raises(ExistsError):
        gather(b"late")
    assert files.content("landed/1/part") == b"good"


def test_view_has_exactly_its_files_and_readers_keep_previous_view(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    for name in ("data/1", "data/2"):
        files.put(name, name.encode())
    one, two = tmp_path / "data" / "1", tmp_path / "data" / "2"
    assert files.shown("latest") is None
    files.show("latest", "a", {"jobs/day=1/x": one})
    with files.open("latest/jobs/day=1/x") as reader:
        files.show("latest", "b", {"jobs/y": two, "polls/x": one})
        assert reader.read() == b"data/1"
    assert files.shown("latest") == "b"
    assert files.matching("latest/*/*") == ["latest/jobs/y", "latest/polls/x"]
    files.show("latest", "c", {})
    assert sorted(path.name for path in tmp_path.glob(".latest-*")) == [".latest-b", ".latest-c"]
    (tmp_path / ".latest-c").rmdir()
    assert files.shown("latest") is None, "it leads nowhere"


def test_view_is_identified_by_label_and_paths(files: Files, tmp_path: Path) -> None:
    names = ("data/1", "data/2", "made/3")
    for name in names:
        files.put(name, name.encode())
    files.fetch(names)
    one, two, three = (tmp_path / name for name in names)
    assert (files.shown("latest"), files.showing("latest")) == (None, set())
    files.show("latest", "a", {"jobs/day=1/x": one, "polls/x": three})
    files.show("latest", "b", {"jobs/y": two, "polls/x": one})
    assert (files.shown("latest"), files.showing("latest")) == ("b", {"jobs/y", "polls/x"})
    files.show("latest", "b", {})
    assert files.showing("latest") == {"jobs/y", "polls/x"}, "it was shown before"
    files.remove("data/2")
    if isinstance(files, Objects):
        assert files.showing("latest") == {"polls/x"}


def test_fetched_and_pushed_copies_match_the_store(files: Files, tmp_path: Path) -> None:
    files.put("a/1", b"one")
    files.fetch(["a/1", "a/2"])
    assert (tmp_path / "a/1").read_bytes() == b"one"
    assert not (tmp_path / "a/2").exists()
    files.put("a/1", b"two")
    files.fetch(["a/1"])
    assert (tmp_path / "a/1").read_bytes() == b"two"
    (tmp_path / "a/3").write_bytes(b"made here")
    files.push(["a/3", "a/4"])
    assert (files.content("a/3"), files.content("a/4")) == (b"made here", None)
    with files.open("a/3") as reader:
        assert (reader.seek(5), reader.read(), reader.seek(-4, 2), reader.read(2)) == (5, b"here", 5, b"he")


def test_file_is_moved_without_another_copy(files: Files, tmp_path: Path) -> None:
    files.put("builds/1", b"1")
    files.fetch(["builds/1"])
    files.take(tmp_path / "builds/1", "tables/1")
    (tmp_path / "elsewhere").write_bytes(b"2")
    files.take(tmp_path / "elsewhere", "tables/2")
    assert (files.content("tables/1"), files.content("tables/2")) == (b"1", b"2")
    files.remove("builds/*")
    assert (files.content("builds/1"), files.content("tables/1")) == (None, b"1")


def test_folders_have_a_number_that_changes_when_recreated(files: Files) -> None:
    def gather(name: str, content: bytes) -> None:
        with files.write_folder(f"landed/{name}", "last") as folder:
            (folder / "last").write_bytes(content)

    gather("1", b"one")
    gather("2", b"two")
    before = files.folders("landed")
    assert before.keys() == {"1", "2"}
    assert files.folders("landed") == before
    files.set_aside("landed/1")
    assert files.folders("landed") == {"2": before["2"]}
    gather("1", b"other")
    assert files.folders("landed")["1"] != before["1"]
    files.remove("landed/1")
    assert files.folders("landed").keys() == {"2"}


def test_files_set_aside_are_kept(files: Files) -> None:
    files.put("a/b", b"1")
    files.put("a/c/d", b"2")
    assert files.set_aside("a/b") == "damaged/b"
    assert files.set_aside("a/c") == "damaged/c"
    assert files.matching("a/*") == []
    assert (files.content("damaged/b"), files.content("damaged/c/d")) == (b"1", b"2")


def test_lock_is_exclusive_or_shared(files: Files) -> None:
    shared = files.lock("lock", is_shared=True)
    with shared, files.lock("lock", is_shared=True), pytest.raises(LockHeldError), files.lock("lock"):
        pass
    with files.lock("lock"), pytest.raises(LockHeldError), files.lock("lock"):
        pass


def test_lock_is_released_when_process_is_killed(files: Files) -> None:
    code = (
        "import os; from pathlib import PosixPath; from iosig.warehouse.store import objects\n"
        "from iosig.warehouse.store.files import Folder; from iosig.warehouse.store.objects import Objects\n"
        f"objects.LEASE_S = 1.0\nwith {files!r}.held('lock'): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    if isinstance(files, Objects):
        # its lease must first expire
        time.sleep(1.2)
    with files.lock("lock"):
        pass


@pytest.mark.slow
@pytest.mark.long
def test_lease_is_renewed_until_lock_is_released(
    object_store: SeaweedFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LEASE_S", 0.6)
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    files = Objects(f"s3://iosig/{uuid.uuid4().hex}", tmp_path)
    with files.lock("lock"):
        for _ in range(5):
            time.sleep(0.3)
            with pytest.raises(LockHeldError), files.lock("lock"):
                pass
    with files.lock("lock"):
        pass
    assert files.matching("*") == []


def test_only_file_modules_rename_remove_or_sync() -> None:
    # the journal is SQLite's and has separate locks
    ours = re.compile(r"^import (?:os|fcntl|shutil)\b|\.(?:rename|unlink|rmtree|rmdir|symlink_to|hardlink_to)\(", re.M)
    rooms = (Path(files_module.__file__).parent, Path(releases.__file__).parent)
    others = {path.name for room in rooms for path in room.glob("*.py") if ours.search(path.read_text())}
    assert others == {"files.py", "journal.py", "objects.py"}


def test_seal_is_size_and_sha256(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    sealed = FileChecksum(len(content), hashlib.sha256(content).hexdigest())
    (tmp_path / "x").write_bytes(content)
    assert FileChecksum.from_file(io.BytesIO(content)) == FileChecksum.from_path(tmp_path / "x") == sealed


def test_side_by_side_may_be_nested_and_keeps_order() -> None:
    def doubled(number: int) -> list[int]:
        return files_module.side_by_side(lambda each: 2 * each, range(number), 2)

    assert files_module.side_by_side(doubled, range(6), 2) == [
        [2 * each for each in range(number)] for number in range(6)
    ]


def test_side_by_side_waits_for_all_tasks_after_a_failure() -> None:
    ended = []

    def fail_or_end_late(number: int) -> None:
        if number == 0:
            raise LockHeldError("first")
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(LockHeldError):
        files_module.side_by_side(fail_or_end_late, range(4), 2)
    assert sorted(ended) == [1, 2, 3]
