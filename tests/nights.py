"""A small site for the flows: two days, two controllers, three applications; landed once, copied for each test."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import iosig.expectations.docs
import iosig.expectations.gate
import iosig.flows.executors
from iosig.cli import main
from iosig.flows import nightly
from iosig.flows.executors import Engine
from iosig.settings.model import Settings
from iosig.streams.landing import Arrival, ReadOptions, land_paths
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.quality import QUALITY_DAILY, QUARANTINE
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.store import Store
from tests.documents import require_schema

Cli = Callable[..., tuple[int, str, str]]
_MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
_STEP_S = 10


def write_small_site(folder: Path) -> None:
    """Write a job log and a day's polls around midnight, as text; two jobs end on each day."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["JobID|User|JobName|Partition|NNodes|Start|End|State"]
    for number, start_min in enumerate((-100, -60, 5, 40)):
        started = _MIDNIGHT + timedelta(minutes=start_min)
        ended = started + timedelta(minutes=30)
        name = ("ior", "s3d")[number % 2]
        lines.append(f"{100 + number}|ann|{name}|batch|8|{started:%FT%TZ}|{ended:%FT%TZ}|COMPLETED")
    (folder / "jobs.sacct").write_text("\n".join(lines) + "\n")
    edges = range(-7200 + _STEP_S, 7200 + _STEP_S, _STEP_S)
    polls = [
        (_MIDNIGHT + timedelta(seconds=second), f"c{controller}", 1e6 * (controller + 1), 2e6 + second * 10.0)
        for second in edges
        for controller in range(2)
    ]
    columns = ["polled_at", "controller", "read_bytes_per_s", "write_bytes_per_s"]
    frame = pl.DataFrame(polls, schema=columns, orient="row").with_columns(
        polled_at=pl.col("polled_at").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
    frame.write_csv(folder / "polls.csv")


def land_files(
    store: Store,
    *paths: Path | str,
    settings: Settings | None = None,
    replace: bool = False,
    allows_refusals: bool = False,
    **options: Any,
) -> list[Arrival]:
    """Land files and folders, by default none of which may be refused; `options` are those of `ReadOptions`."""
    own = settings or Settings()
    arrivals = list(land_paths(store, own, map(str, paths), ReadOptions(**options), replace=replace))
    assert allows_refusals or [arrival.line() for arrival in arrivals if arrival.refusal] == []
    return arrivals


def run_night(
    store: Store, settings: Settings | None = None, report: Callable[..., None] = lambda *_: None, **options: Any
) -> Release:
    """Run a night without Prefect; `options` are those of `nightly.run_inline`."""
    return nightly.run_inline(store, settings or Settings(), report, **options)


def query_release(store: Store, release: Release, query: str, **options: Any) -> pl.DataFrame:
    """Return the result of a query; `options` are those of `open_release`."""
    with open_release(store, release, query, **options) as connection:
        return connection.sql(query).pl()


def read_tables(store: Store, release: Release | None = None) -> dict[str, list[str]]:
    """Return every row of every table of a release, the current one by default, as sorted texts."""
    with open_release(store, release or releases.find(store, None)) as connection:
        return {
            table.name: sorted(map(str, connection.sql(f'select t from "{table.name}" as t').fetchall()))
            for table in list_published_tables()
        }


def hash_files(store: Store, release: Release) -> dict[str, list[str]]:
    """Return the SHA-256 of each file of a release, by table."""
    return {
        name: [hashlib.sha256(store.here(path).read_bytes()).hexdigest() for path in sorted(paths)]
        for name, paths in releases.files_of(store, release).items()
    }


@pytest.fixture(scope="session")
def landed_site(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse into which the small site is landed; not to be changed."""
    root = tmp_path_factory.mktemp("small-site")
    write_small_site(root / "site")
    store = Store(root / "warehouse")
    assert [arrival.has_refusals for arrival in land_files(store, root / "site")] == [False, False]
    return store


@pytest.fixture
def site(landed_site: Store, tmp_path: Path) -> Store:
    """A copy of the small site's warehouse, to be changed at will."""
    shutil.copytree(landed_site.root, tmp_path / "warehouse")
    return Store(tmp_path / "warehouse")


@dataclass(frozen=True)
class Night:
    """A warehouse after its night, and what the night released; shared by tests, so not to be changed."""

    store: Store
    release: Release

    def copy(self, root: Path) -> Store:
        """Return a copy of the warehouse, to be changed at will."""
        shutil.copytree(self.store.root, root, symlinks=True)
        return Store(root)


#: what checks found, by all that they look at
FoundByChecks = dict[
    tuple[str, str, tuple[tuple[str, float], ...]], list[tuple[pl.DataFrame, iosig.expectations.gate.CheckResult]]
]


@pytest.fixture(scope="session")
def found_by_checks() -> FoundByChecks:
    """What the suites found in this process so far: they look at rows and limits alone, and take seconds a night."""
    return {}


def execute_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all work items, checks among them, be executed in this process."""
    monkeypatch.setattr(iosig.flows.executors, "with_processes", lambda *_: nullcontext(Engine()))


def check_here(monkeypatch: pytest.MonkeyPatch, found: FoundByChecks) -> None:
    """Let tables be checked in this process, and the same rows of a table once only."""
    check = iosig.expectations.gate.check

    def check_new_rows(
        table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]
    ) -> iosig.expectations.gate.CheckResult:
        known = found.setdefault((table.name, str(frame.schema), tuple(sorted(parameters.items()))), [])
        for rows, checked in known:
            if rows.equals(frame):
                return checked
        known.append((frame, check(table, frame, parameters)))
        return known[-1][1]

    monkeypatch.setattr(iosig.expectations.gate, "check", check_new_rows)
    execute_here(monkeypatch)


@pytest.fixture
def checks_here(monkeypatch: pytest.MonkeyPatch, found_by_checks: FoundByChecks) -> None:
    """Let tables be checked in this process, and the same rows of a table once only: a child has it all to do again."""
    check_here(monkeypatch, found_by_checks)


@pytest.fixture(scope="session")
def checked_night(
    landed_site: Store, found_by_checks: FoundByChecks, tmp_path_factory: pytest.TempPathFactory
) -> Night:
    """The small site after a night of its two days, every table held to its suite; not to be changed."""
    store = Store(tmp_path_factory.mktemp("checked-night") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        check_here(monkeypatch, found_by_checks)
        return Night(store, run_night(store))


def pass_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every check pass at once, in this process."""

    def check(table: Any, frame: pl.DataFrame, _: Any) -> iosig.expectations.gate.CheckResult:
        days = frame[table.partition].unique().sort() if table.partition else [None] * (frame.height > 0)
        rows = [(day, table.name, "key_unique", "critical", True, "{}", 0, 1) for day in days]
        verdicts = pl.DataFrame(rows, schema=frames.schema(QUALITY_DAILY), orient="row")
        return iosig.expectations.gate.CheckResult(frame, frames.empty(QUARANTINE), verdicts)

    monkeypatch.setattr(iosig.expectations.gate, "check", check)
    monkeypatch.setattr(iosig.expectations.docs, "build", lambda *_: Path())
    execute_here(monkeypatch)


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every check pass at once: for tests that are about the order of writes, not about quality."""
    pass_every_check(monkeypatch)


@pytest.fixture(scope="module")
def quick_checks_throughout() -> Iterator[None]:
    """Let every check of a whole module pass at once: for tests of what a night computes; others check all of it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        yield


@pytest.fixture(scope="session")
def quick_night(landed_site: Store, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The small site after a night of its two days, without checks; not to be changed."""
    store = Store(tmp_path_factory.mktemp("quick-night") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        return Night(store, run_night(store))


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call the command as a shell would: returns its exit code, its stdout and its stderr.

    What it prints with --json is held to its schema.
    """
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    # as in a pipe, where tables are as wide as they are
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["iosig", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        if "--json" in arguments:
            require_schema(printed.out)
        return int(ended.value.code or 0), printed.out, printed.err

    return call
