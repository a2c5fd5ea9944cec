"""Real faults of the command in a separate process end with exit code 6, one sentence, and no partial changes.

`pytest -rP` prints the table: fault, command, exit code, sentence.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from iosig.warehouse.releases import releases
from iosig.warehouse.store.journal import Journal
from iosig.warehouse.store.store import Store
from tests.flows.faulty_machines import SOUND, USER, Ended, Machine, disk, kill_children, read_only, size_on_disk
from tests.nights import Night, read_tables, write_small_site

#: applies a fault to a warehouse while the context lasts, and yields the machine on which the command runs
Happens = Callable[[Path], AbstractContextManager[Machine]]
CACHES = ("release_index", "snapshot_files", "plain", "sound.json")
SQL = ("sql", "select count(*) from job_io")
RUN = ("run", "--inline")
ANEW = ("run", "--inline", "--date", "2026-03-03")
NEW_JOB = (
    "JobID|User|JobName|Partition|NNodes|Start|End|State\n"
    "900|ann|ior|batch|8|2026-03-03T10:00:00Z|2026-03-03T10:20:00Z|COMPLETED\n"
)
EXPORT = ("export", "job_io", "--output", "-", "--format", "csv")


def assert_told(name: str, command: tuple[object, ...], ended: Ended, told: str, code: int = 6) -> None:
    print(f"| {name} | {' '.join(map(str, command[:3]))} | {ended.code} | {ended.sentence} |")
    assert "Traceback" not in ended.err
    assert (ended.code, ended.out) == (code, ""), ended.err
    # suggested commands name the warehouse of the command line
    assert re.search(told, re.sub(r"`iosig --warehouse \S+ ", "`iosig ", ended.sentence)), ended.sentence
    assert sum(line.startswith("iosig: ") for line in ended.err.splitlines()) == 1
    assert ended.err.splitlines()[-1] == f"iosig: {ended.sentence}"


# ---- faults


def forgotten(root: Path) -> None:
    """Remove cached files, so that the metadata are read again."""
    for name in CACHES:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).unlink(missing_ok=True) if (root / name).is_file() else None


def _torn(path: Path) -> None:
    path.chmod(0o644)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _flipped(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)


def damaged(pattern: str, how: Callable[[Path], object] = _torn, *, is_cached: bool = True) -> Happens:
    """Damage the last file that matches a pattern."""

    @contextmanager
    def happens(root: Path) -> Iterator[Machine]:
        if not is_cached:
            forgotten(root)
        how(sorted(root.glob(pattern))[-1])
        yield SOUND

    return happens


def without_right(pattern: str, mode: int) -> Happens:
    """Remove permissions from files that match a pattern, or from the warehouse itself without a pattern."""

    @contextmanager
    def happens(root: Path) -> Iterator[Machine]:
        before = {path: path.stat().st_mode for path in (sorted(root.glob(pattern)) if pattern else [root])}
        for path in before:
            path.chmod(mode)
        yield USER
        for path, known in before.items():
            path.chmod(known)

    return happens


@contextmanager
def cannot_be_written(root: Path) -> Iterator[Machine]:
    with read_only(root):
        yield SOUND


def limited(kind: int, most: int) -> Happens:
    """Limit a resource of the process."""

    @contextmanager
    def happens(_: Path) -> Iterator[Machine]:
        yield Machine(limits=((kind, most),))

    return happens


def with_variables(**variables: str | None) -> Happens:
    @contextmanager
    def happens(_: Path) -> Iterator[Machine]:
        yield Machine(variables=tuple(variables.items()))

    return happens


@contextmanager
def little_memory(root: Path) -> Iterator[Machine]:
    settings = root / "iosig.toml"
    settings.write_text('[engine]\nmemory_limit = "100KB"\n')
    yield SOUND
    settings.unlink()


@contextmanager
def foreign_journal(root: Path) -> Iterator[Machine]:
    (root / "predictions.sqlite").write_bytes(b"no journal" * 500)
    yield SOUND


@contextmanager
def torn_journal(root: Path) -> Iterator[Machine]:
    Journal(root / "predictions.sqlite").close()
    _torn(root / "predictions.sqlite")
    yield SOUND


# ---- each fault is reported in one sentence


@dataclass(frozen=True)
class Fault:
    """A fault, a command that meets it, and the expected message.

    is_mended: whether the fault disappears by itself afterwards, so that a run then yields the same tables.
    """

    name: str
    happens: Happens
    command: tuple[str, ...]
    told: str
    is_mended: bool = False


_METADATA = "tables/job_io/metadata/*.metadata.json"
_OF_RELEASES = "tables/releases/metadata"
_READ_ONLY = r"^/\S+: its file system is read-only\. Mount it writable"
_NO_RIGHT = r": permission denied\. Grant this user the permission"
_NOT_AS_WRITTEN = r"(?:has [\d,]+ bytes, not [\d,]+|was modified \(wrong checksum\)|does not exist)\. `iosig verify`"

#: one fault of each kind is slow, and the others are long
SLOW = (
    Fault(
        "released Parquet flipped", damaged("tables/job_io/data/*", _flipped), SQL, f"job_io/data/.*{_NOT_AS_WRITTEN}"
    ),
    Fault("catalogue torn", damaged("catalogue.sqlite"), SQL, r"catalogue\.sqlite: .*malformed\. `iosig repair`"),
    Fault("metadata torn", damaged(_METADATA, is_cached=False), SQL, rf"metadata\.json {_NOT_AS_WRITTEN}"),
    Fault(
        "no right to read the catalogue", without_right("catalogue.sqlite", 0), SQL, rf"catalogue\.sqlite{_NO_RIGHT}"
    ),
    Fault("read-only", cannot_be_written, ("rollback", "2026"), _READ_ONLY),
    Fault(
        "journal foreign", foreign_journal, ("predict", "--follow", "none.jsonl"), r"sqlite is not a journal .* Move it"
    ),
)
LONG = (
    Fault(
        "released Parquet gone", damaged("tables/job_io/data/*", Path.unlink), SQL, f"job_io/data/.*{_NOT_AS_WRITTEN}"
    ),
    Fault("released Parquet torn", damaged("tables/job_io/data/*"), EXPORT, f"job_io/data/.*{_NOT_AS_WRITTEN}"),
    Fault("landed Parquet torn", damaged("landed/*/polls*.parquet"), ANEW, r"landed/.*\.parquet .*`iosig verify`"),
    Fault("landed Parquet gone", damaged("landed/*/polls*.parquet", Path.unlink), ANEW, r"landed/.*`iosig verify`"),
    Fault("catalogue emptied", damaged("catalogue.sqlite", lambda path: path.write_bytes(b"")), SQL, "names no table"),
    Fault("metadata gone", damaged(_METADATA, Path.unlink, is_cached=False), SQL, rf"metadata\.json {_NOT_AS_WRITTEN}"),
    *(
        Fault(
            f"{name} {how.__name__.strip('_')}",
            damaged(pattern, how, is_cached=False),
            SQL,
            rf"{ending} {_NOT_AS_WRITTEN}",
        )
        for how in (_torn, Path.unlink)
        for name, pattern, ending in (
            ("manifest list", "tables/job_io/metadata/snap-*.avro", r"\.avro"),
            ("manifest", "tables/job_io/metadata/*-m0.avro", r"\.avro"),
            ("releases' metadata", f"{_OF_RELEASES}/*.metadata.json", r"\.json"),
            ("releases' manifest list", f"{_OF_RELEASES}/snap-*.avro", r"\.avro"),
            ("releases' rows", "tables/releases/data/*.parquet", r"\.parquet"),
        )
    ),
    Fault(
        "landing's manifest torn", damaged("landed/*/landing.json"), RUN, r"landing\.json is damaged.*`iosig repair`"
    ),
    Fault("journal torn", torn_journal, ("predict", "--follow", "none.jsonl"), r"cannot be used: .*malformed"),
    Fault(
        "no right to read landed files", without_right("landed/*/*.parquet", 0), ANEW, rf"\.parquet{_NO_RIGHT}", True
    ),
    Fault("no right to read a manifest", without_right("landed/*/*.json", 0), RUN, rf"landing\.json{_NO_RIGHT}", True),
    Fault("no right to read a release", without_right("tables/job_io/data/*", 0), SQL, rf"\.parquet{_NO_RIGHT}", True),
    Fault("no right to read the warehouse", without_right("", 0), ("releases",), _NO_RIGHT, True),
    Fault("no right to write", without_right("*", 0o555), ANEW, _NO_RIGHT, True),
    Fault("read-only", cannot_be_written, ANEW, _READ_ONLY, True),
    Fault("read-only", cannot_be_written, ("repair",), _READ_ONLY),
    Fault("little memory", little_memory, ANEW, r"[Oo]ut of memory.*memory_limit", True),
    Fault(
        "files may not grow",
        limited(resource.RLIMIT_FSIZE, 2000),
        ANEW,
        r"exceeds the maximum file size.*ulimit -f",
        True,
    ),
    Fault(
        "no Prefect server",
        with_variables(PREFECT_API_URL="http://127.0.0.1:9/api"),
        ("run",),
        r"PREFECT_API_URL \(http://127\.0\.0\.1:9/api\) does not answer",
        True,
    ),
)


@pytest.fixture
def root(quick_night: Night, tmp_path: Path) -> Path:
    """A copy of a warehouse with a release, on a machine without faults so far."""
    return quick_night.copy(tmp_path / "warehouse").root


def _named(faults: tuple[Fault, ...], mark: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(fault, marks=mark, id=f"{fault.name}-{fault.command[0]}") for fault in faults]


@pytest.mark.parametrize("fault", [*_named(SLOW, pytest.mark.slow), *_named(LONG, pytest.mark.long)])
def test_fault_is_reported_in_one_sentence(fault: Fault, root: Path, request: pytest.FixtureRequest) -> None:
    if fault.is_mended:
        shutil.rmtree(root)
        request.getfixturevalue("checked_night").copy(root)
    before = read_tables(Store(root)) if fault.is_mended else {}
    with fault.happens(root) as machine:
        ended = machine.iosig("--warehouse", root, *fault.command, folder=root.parent)
    assert_told(fault.name, fault.command, ended, fault.told)
    if fault.is_mended:
        assert read_tables(Store(root)) == before, "nothing was changed"
        assert SOUND.iosig("--warehouse", root, *ANEW).code == 0
        assert read_tables(Store(root)) == before


# ---- tolerated conditions


def one_of_them(cases: list[Any]) -> list[Any]:
    """Mark the first case slow, and the others long."""
    return [
        pytest.param(case, marks=pytest.mark.long if place else pytest.mark.slow) for place, case in enumerate(cases)
    ]


@pytest.mark.parametrize("command", one_of_them([SQL, ("releases",), EXPORT, ("diff", "2026", "2026"), ("verify",)]))
def test_reading_commands_work_on_a_read_only_file_system(command: tuple[str, ...], root: Path) -> None:
    forgotten(root)
    with read_only(root):
        ended = SOUND.iosig("--warehouse", root, *command)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("text", one_of_them([b"{torn", b"", b"null", b"[1]", b"\xff\x00"]))
@pytest.mark.long
def test_damaged_caches_are_rebuilt_silently(text: bytes, root: Path) -> None:
    names = [*root.glob("release_index/*"), *root.glob("snapshot_files/*"), root / "sound.json"]
    names += [root / "publishing.json", root / "landing.sequence"]
    for path in names:
        path.write_bytes(text)
    ended = SOUND.iosig("--warehouse", root, *SQL)
    assert (ended.code, ended.err) == (0, "")
    (root.parent / "new.sacct").write_text(NEW_JOB)
    ended = SOUND.iosig("--warehouse", root, "land", root.parent / "new.sacct")
    assert ended.code == 0, ended.err
    manifests = [json.loads(path.read_text()) for path in root.glob("landed/*/landing.json")]
    assert sorted(manifest["sequence"] for manifest in manifests) == [1, 2, 3]


@pytest.mark.slow
def test_unreadable_input_does_not_prevent_others_from_landing(tmp_path: Path) -> None:
    inbox, root = tmp_path / "inbox", tmp_path / "warehouse"
    write_small_site(inbox)
    (inbox / "a.sacct").write_text(NEW_JOB)
    (inbox / "shut").mkdir()
    (inbox / "shut" / "b.sacct").write_text(NEW_JOB)
    for name in ("a.sacct", "shut"):
        (inbox / name).chmod(0)
    ended = USER.iosig("--warehouse", root, "land", inbox)
    for name in ("a.sacct", "shut"):
        (inbox / name).chmod(0o755)
    assert ended.code == 0
    told = [line for line in ended.err.splitlines() if "refused" in line]
    remedy = "refused. It cannot be read: Permission denied. Grant this user the permission to read it."
    assert told == [f"{inbox / name}: {remedy}" for name in ("a.sacct", "shut")]
    assert "2 files landed with 2,884 rows" in ended.out
    assert len(list(root.glob("landed/*/landing.json"))) == 2
    ended = USER.iosig("--warehouse", root, "land", inbox)
    assert (ended.code, "1 file landed" in ended.out) == (0, True), "the same content is there twice"


@pytest.mark.slow
def test_full_stdout_is_reported(root: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = SOUND.iosig("--warehouse", root, "releases", printed_to=full)
    assert_told("full output", ("releases",), ended, r"The output: no space left")


@pytest.mark.long
def test_missing_home_and_temporary_folder_are_tolerated(root: Path, landed_site: Store, tmp_path: Path) -> None:
    nowhere = Machine(variables=(("TMPDIR", "/nowhere"), ("HOME", "/nowhere"), ("XDG_CACHE_HOME", "/nowhere")))
    for command in (SQL, ANEW):
        assert nowhere.iosig("--warehouse", root, *command).code == 0


# ---- killed processes


@pytest.mark.long
def test_killed_worker_processes_are_reported(root: Path) -> None:
    ended = SOUND.iosig("--warehouse", root, *ANEW, meanwhile=kill_children)
    remedy = r"ended; the system may have run out of memory\. Completed items stay: run again"
    assert_told("every worker killed", ANEW, ended, remedy)
    assert SOUND.iosig("--warehouse", root, *ANEW).code == 0


@pytest.mark.long
def test_single_killed_worker_is_replaced(root: Path) -> None:
    ended = SOUND.iosig("--warehouse", root, *ANEW, meanwhile=partial(kill_children, max_count=1))
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err


# ---- full disks


@pytest.mark.slow
def test_full_disk_during_landing_leaves_nothing(tmp_path: Path) -> None:
    write_small_site(tmp_path / "site")
    with disk(tmp_path / "disk", 16_384) as small:
        root = small.folder / "warehouse"
        ended = SOUND.iosig("--warehouse", root, "land", tmp_path / "site" / "polls.csv")
        assert_told("disk full", ("land",), ended, rf"^{re.escape(str(root))}\S*: no space left on the disk")
        assert list(root.glob("landed/*")) == []
        small.resize(1 << 24)
        assert SOUND.iosig("--warehouse", root, "land", tmp_path / "site" / "polls.csv").code == 0


#: share of the space of a night that is free: the disk fills while it builds, checks, publishes, links or reports
PARTS = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9]


@pytest.mark.parametrize("part", [pytest.param(part, marks=pytest.mark.long) for part in PARTS])
def test_night_on_a_full_disk_publishes_all_or_nothing(
    part: float, landed_site: Store, checked_night: Night, tmp_path: Path
) -> None:
    needed, landed = size_on_disk(checked_night.store.root), size_on_disk(landed_site.root)
    with disk(tmp_path / "disk", 1 << 26) as small:
        root = small.folder / "warehouse"
        shutil.copytree(landed_site.root, root)
        small.resize(landed + int(part * (needed - landed)))
        ended = SOUND.iosig("--warehouse", root, *RUN)
        at = (ended.err.splitlines() or [""])[-2:][0].split("  ")[0]
        assert_told(
            f"disk full at {part:.0%}, after: {at}", RUN, ended, r"^/\S+: no space left on the disk\. Free some"
        )
        full = read_tables(Store(root)) if releases.current(Store(root)) else None
        small.resize(1 << 26)
        expected = read_tables(checked_night.store)
        assert full in (None, expected), "all of the release or none"
        assert SOUND.iosig("--warehouse", root, *RUN, "--strict").code == (5 if full else 0)
        assert read_tables(Store(root)) == expected
        assert SOUND.iosig("--warehouse", root, "verify", "--all").code == 0
        assert len(releases.history(Store(root))) == 1
