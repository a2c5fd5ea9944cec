"""Pieces of work as data: shipped to other processes they make what they make here, to the byte."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from iosig.flows import nightly
from iosig.flows.executors import Inline
from iosig.flows.steps.pieces import Done, File, Given, Piece
from iosig.settings.model import Settings
from iosig.streams.landing import Told, land_paths
from iosig.warehouse.contracts.classes import CLASSES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.quality import QUALITY, QUALITY_DAYS, QUARANTINE
from iosig.warehouse.errors import IosigError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release, published
from iosig.warehouse.store.store import Store
from tests.flows.traced_runs import land, trace

#: a job whose times are in the wrong order
FAULTY = "JobID|User|JobName|NNodes|Start|End|State\n9|ann|ior|8|2026-03-03T01:00:00Z|2026-03-03T00:00:00Z|COMPLETED\n"
#: checks that stand for all where Great Expectations is imported anew in each process
SOME = {"stage jobs", "check stage polls"}
CHECKS = {*SOME, "checks"}
SETTINGS = Settings.model_validate(
    {"filesystems": {"scratch": "default"}, "partitions": {"batch": ["default"]}, "periods": {"methods": ["dft"]}}
)


class Shipping(Inline):
    """Sends pieces to other processes, as bytes and as JSON; those that `stays` takes are done here."""

    width = 2

    def __init__(self, pool: ProcessPoolExecutor, stays: Callable[[Piece], bool]) -> None:
        self.pool = pool
        self.stays = stays
        self.shipped: list[Piece] = []

    def begin(self, root: Path, piece: Piece) -> Future[Done]:
        if self.stays(piece):
            return super().begin(root, piece)
        codec = TypeAdapter(Piece)
        assert codec.validate_json(codec.dump_json(piece)) == piece
        self.shipped.append(piece)
        return self.pool.submit(do_bytes, root, pickle.dumps(piece))


def do_bytes(root: Path, piece: bytes) -> Done:
    """Do what a piece says that came as bytes."""
    unpickled: Piece = pickle.loads(piece)
    return unpickled.do(root)


@contextmanager
def elsewhere(folder: Path, most_pieces: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """Start processes that share nothing with this one, in another folder: each does so many pieces at most."""
    folder.mkdir()
    with ProcessPoolExecutor(2, get_context("spawn"), os.chdir, (folder,), max_tasks_per_child=most_pieces) as pool:
        yield pool


@pytest.fixture
def sites(landed_site: Store, tmp_path: Path, quick_checks: None) -> tuple[Store, Store]:
    """Two warehouses alike: one day is released, another is landed with a trace and a faulty job."""
    here, there = (Store(tmp_path / name / "warehouse") for name in ("here", "there"))
    shutil.copytree(landed_site.root, here.root)
    nightly.run_inline(here, SETTINGS, lambda *_: None, until=date(2026, 3, 2))
    requests = [
        {"rank": 0, "direction": "write", "request_bytes": 1e6, "began_s": 60.0 * n, "ceased_s": 60.0 * n + 5}
        for n in range(20)
    ]
    land(here, "trace", trace(started_min=40, modules={"POSIX": {}}, requests=requests, process_count=1))
    (tmp_path / "faulty.sacct").write_text(FAULTY)
    list(land_paths(here, SETTINGS, [str(tmp_path / "faulty.sacct")], Told()))
    shutil.copytree(here.root, there.root)
    return here, there


def files(store: Store, release: Release) -> dict[str, dict[str, bytes]]:
    """Return the bytes of every file of each table of a release."""
    found = releases.files_of(store, release)
    return {table.name: {path.name: path.read_bytes() for path in found.get(table.name, [])} for table in published()}


@pytest.mark.slow
@pytest.mark.long
def test_pieces_do_elsewhere_what_they_do_here(sites: tuple[Store, Store], tmp_path: Path) -> None:
    here, there = sites
    told: list[tuple[str, int]] = []
    wanted = nightly.run_inline(here, SETTINGS, lambda name, count, _: told.append((name, count)))
    with elsewhere(tmp_path / "elsewhere") as pool:
        # Checks are made quick in this process alone.
        executor = Shipping(pool, stays=lambda piece: piece.is_check)
        shipped: list[tuple[str, int]] = []
        release = nightly.run_inline(
            there, SETTINGS, lambda name, count, _: shipped.append((name, count)), executor=executor
        )
    published = {"release_id": "", "created_at": "", "snapshots": {}}
    assert replace(release, **published) == replace(wanted, **published)
    assert files(there, release) == files(here, wanted)
    assert sorted(shipped) == sorted(told), "each piece is told, in whatever order they end"
    assert {piece.name for piece in executor.shipped} == {name for name, _ in told if name not in {*CHECKS, "release"}}
    assert any(
        read for piece in executor.shipped for read in piece.reads if isinstance(read, File) and read.is_released
    )
    paths = [file.path for piece in executor.shipped for file in piece.writes]
    assert len(set(paths)) == len(paths), "no two pieces write the same file"


@pytest.mark.long
def test_each_piece_can_have_a_process_of_its_own(sites: tuple[Store, Store], tmp_path: Path) -> None:
    here, there = sites
    quick = nightly.run_inline(here, SETTINGS, lambda *_: None)
    with elsewhere(tmp_path / "elsewhere", 1) as pool:
        executor = Shipping(pool, stays=lambda piece: piece.is_check and piece.name not in SOME)
        release = nightly.run_inline(there, SETTINGS, lambda *_: None, executor=executor)
    assert {piece.name for piece in executor.shipped} >= SOME
    found, wanted = files(there, release), files(here, quick)
    for table in published():
        # what checks say, and take out: here they are none, there real ones
        if table not in (QUALITY, QUALITY_DAYS, QUARANTINE, JOBS):
            assert found[table.name] == wanted[table.name], table.name
    assert found[QUARANTINE.name], "the faulty job is taken out"


# ---- what a function is given


def refuse(given: Given) -> int:
    raise IosigError(f"no {given.days}")


def build_nothing(given: Given) -> int:
    return len(given.files(CLASSES)) + len(given.released(JOBS))


def piece_of(function: Callable[[Given], int]) -> Piece:
    reads = (File("classes", "a"), File("jobs", "b"), File("jobs", "c", is_released=True))
    place = f"{function.__module__}:{function.__name__}"
    return Piece("a piece", place, reads, (File("classes", "d"),), (None,), Settings(), "built", "built/done.json")


def test_a_mark_comes_last(tmp_path: Path) -> None:
    piece = piece_of(refuse)
    with pytest.raises(IosigError, match="None"):
        piece.do(tmp_path)
    assert not (tmp_path / piece.mark).exists()
    done = piece_of(build_nothing).do(tmp_path)
    assert (done.name, done.row_count) == ("a piece", 2)
    assert (tmp_path / piece.mark).is_file()


def test_only_what_is_declared_can_be_written(tmp_path: Path) -> None:
    given = Given(tmp_path, piece_of(build_nothing))
    assert given.path(CLASSES) == tmp_path / "d"
    with pytest.raises(ValueError, match="not enough"):
        given.path(JOBS)


# ---- the steps' records


def test_every_published_table_is_written_by_one_work() -> None:
    written = [table.name for step in nightly.STEPS for work in step.works for table in work.writes]
    assert len(set(written)) == len(written)
    assert {table.name for table in published()} <= set(written)


def test_marks_have_names_of_their_own() -> None:
    names = [work.name.replace(" ", "-").replace("/", "") for step in nightly.STEPS for work in step.works]
    assert len(set(names)) == len(names)
