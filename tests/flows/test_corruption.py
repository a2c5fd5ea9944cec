"""`verify` finds every kind of damage to every kind of file, and the next run after `repair` works.

Eight kinds of damage to each kind of file, in a warehouse at its original path and in a moved warehouse.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from iosig.warehouse.releases import checksums, releases, seals
from iosig.warehouse.releases.holds import Hold
from iosig.warehouse.releases.locations import get_relative_name, metadata_locations
from iosig.warehouse.releases.repairing import repair
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store
from tests.nights import land_files, pass_every_check, read_tables, run_night, write_small_site

_PAGE = 4096


def _write_more_jobs(folder: Path, number: int) -> Path:
    """Write a job log with one more run like the last run of the small site."""
    header, *rows = (folder / "jobs.sacct").read_text().splitlines()
    path = folder / f"jobs-{number}.sacct"
    path.write_text(f"{header}\n{rows[-1].replace('103|', f'{number}|')}\n")
    return path


@dataclass(frozen=True)
class Site:
    """Inputs, and a warehouse with two releases of them: the second release has one more run."""

    inputs: Path
    store: Store


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    root = tmp_path_factory.mktemp("corrupted")
    made = Site(root / "site", Store(root / "warehouse"))
    write_small_site(made.inputs)
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        land_files(made.store, made.inputs)
        run_night(made.store)
        land_files(made.store, _write_more_jobs(made.inputs, 104))
        run_night(made.store)
        _write_more_jobs(made.inputs, 105)
    return made


def _contents(store: Store) -> dict[str, list[str]]:
    """All rows of tables about runs and their traffic, sorted."""
    tables = ("jobs", "job_io", "applications", "signatures", "polls_daily", "rejects")
    return {name: rows for name, rows in read_tables(store).items() if name in tables}


@pytest.fixture(scope="module")
def undamaged(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Contents of the next release of an undamaged warehouse."""
    store = Store(tmp_path_factory.mktemp("undamaged") / "warehouse")
    shutil.copytree(site.store.root, store.root, symlinks=True)
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        land_files(store, site.inputs / "jobs-105.sacct")
        run_night(store)
    return _contents(store)


# ---- files: each function returns the file to damage, and another file of its kind


def _metadata(store: Store) -> tuple[Path, Path]:
    found = {table: get_relative_name(table, location) for table, location in metadata_locations(store).items()}
    return store.root / found["jobs"], store.root / found["job_io"]


def _of_last_release(store: Store, pattern: str) -> tuple[Path, Path]:
    added = checksums.read(store, seals.make_seal_name(releases.find(store, None))) or {}
    names = [name for name in added if Path(name).match(pattern)]
    own, other = (next(name for name in names if name.startswith(f"tables/{table}/")) for table in ("jobs", "job_io"))
    return store.root / own, store.root / other


def _manifest_list(store: Store) -> tuple[Path, Path]:
    return _of_last_release(store, "metadata/snap-*.avro")


def _manifest(store: Store) -> tuple[Path, Path]:
    return _of_last_release(store, "metadata/*-m0.avro")


def _data(store: Store) -> tuple[Path, Path]:
    paths = releases.files_of(store, releases.find(store, None))["jobs"]
    return paths[0], paths[1]


def _landed(store: Store) -> tuple[Path, Path]:
    polls = sorted(store.landed.glob("*/polls-*.parquet"))
    return polls[0], polls[1]


def _landing(store: Store) -> tuple[Path, Path]:
    first, second, *_ = sorted(store.landed.glob("*/landing.json"))
    return first, second


def _seal(store: Store) -> tuple[Path, Path]:
    first, second = sorted((store.root / "seals").glob("0*.json"))
    return second, first


def _catalogue(store: Store) -> tuple[Path, Path]:
    other = store.root.parent / "other.sqlite"
    shutil.copyfile(store.catalogue, other)
    import sqlite3

    with sqlite3.connect(other) as connection:
        connection.execute("delete from iceberg_tables where table_name = 'jobs'")
    return store.catalogue, other


#: state documents, with contents that have no effect on a night
STATE: dict[str, Any] = {
    "pins.json": {"20260303T000000Z-run": None},
    "rollback.json": asdict(Hold("20260303T000000Z-run", "2026-03-03T00:00:00+00:00", (), (), None)),
    "expired.json": {"20260301T000000Z-run": "2026-03-03T00:00:00+00:00"},
    "closed_days.json": ["2001-01-01", "2001-01-02"],
}


def _state(name: str) -> Callable[[Store], tuple[Path, Path]]:
    def place(store: Store) -> tuple[Path, Path]:
        for each, document in STATE.items():
            put_state(store, each, document)
        other = "pins.json" if name.endswith("rollback.json") else name.replace(Path(name).name, "rollback.json")
        return store.root / name, store.root / other

    return place


FILES: dict[str, Callable[[Store], tuple[Path, Path]]] = {
    "catalogue": _catalogue,
    "table metadata": _metadata,
    "manifest list": _manifest_list,
    "manifest": _manifest,
    "data": _data,
    "landed file": _landed,
    "landing manifest": _landing,
    "seal": _seal,
    **{name: _state(name) for name in STATE},
    "copy of a state document": _state("copies/pins.json"),
}


# ---- damage: each function returns the new content of the file


def _flipped(content: bytes, _: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _zeroed(content: bytes, _: bytes, draw: random.Random) -> bytes:
    """Zero a page, or half of a smaller file; the page must not be zero already."""
    size = min(_PAGE, len(content) // 2)
    starts = [start for start in range(0, len(content) - size + 1, size) if any(content[start : start + size])]
    start = draw.choice(starts)
    return content[:start] + bytes(size) + content[start + size :]


DAMAGES: dict[str, Callable[[bytes, bytes, random.Random], bytes | None]] = {
    "flipped": _flipped,
    "halved": lambda content, _, draw: content[: len(content) // 2],
    "emptied": lambda content, _, draw: b"",
    "garbage": lambda content, _, draw: draw.randbytes(len(content)),
    "removed": lambda content, _, draw: None,
    "doubled": lambda content, _, draw: content * 2,
    "zeroed": _zeroed,
    "exchanged": lambda _, other, draw: other,
}


def _damage(path: Path, content: bytes | None) -> None:
    # hard links in other folders are the same file, so it is replaced for all of them
    path.chmod(0o644)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


CASES = [(file, damage, is_moved) for file in FILES for damage in DAMAGES for is_moved in (False, True)]
#: `.ci/run` has time for few of the cases
_SLOW = {("table metadata", "flipped", True), ("catalogue", "halved", False), ("rollback.json", "removed", True)}


def _marks(case: tuple[str, str, bool]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow if case in _SLOW else pytest.mark.long]


@pytest.mark.parametrize(
    ("file", "damage", "is_moved"),
    [pytest.param(*case, marks=_marks(case)) for case in CASES],
)
def test_damage_is_found_and_next_run_after_repair_works(
    site: Site,
    undamaged: dict[str, list[str]],
    tmp_path: Path,
    quick_checks: None,
    file: str,
    damage: str,
    is_moved: bool,
) -> None:
    made = Store(tmp_path / "made here")
    shutil.copytree(site.store.root, made.root, symlinks=True)
    repair(made)
    assert verify(made, is_all=True) == []
    store = Store(made.root.rename(tmp_path / "moved here")) if is_moved else made
    path, other = FILES[file](store)
    before = path.read_bytes()
    after = DAMAGES[damage](before, other.read_bytes(), random.Random(f"{file} {damage} {is_moved}"))
    assert after != before
    _damage(path, after)
    damages = verify(store)
    assert damages, "the damage is not found"
    assert path.relative_to(store.root).as_posix() in {found.path for found in damages}
    mended = repair(store)
    assert mended
    if path.name in STATE:
        # the other files are unchanged, so a run is not needed
        assert path.read_bytes() == before
        assert verify(store) == []
        return
    for found in (store.root / "damaged").glob("*/landing.json") if file != "landing manifest" else ():
        assert found.is_file()
    if file.startswith("land"):
        land_files(store, site.inputs / "jobs.sacct", site.inputs / "polls.csv", site.inputs / "jobs-104.sacct")
    left = {found.path for found in verify(store)}
    assert left <= ({path.relative_to(store.root).as_posix()} if file == "data" else set())
    land_files(store, site.inputs / "jobs-105.sacct")
    run_night(store)
    assert verify(store) == []
    assert _contents(store) == undamaged
