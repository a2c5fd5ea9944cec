"""Work items are plain data from which other processes build byte-identical tables."""

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
from iosig.flows.executors import Engine
from iosig.flows.steps import order
from iosig.flows.steps.items import ItemResult, StepContext, TableFile, WorkItem, execute
from iosig.settings.model import Settings
from iosig.warehouse.contracts.classes import CLASSES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.quality import QUALITY, QUALITY_DAILY, QUARANTINE
from iosig.warehouse.errors import IosigError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.store import Store
from tests.flows.traced_runs import land, trace
from tests.nights import land_files, run_night

#: a job that ends before it starts
FAULTY = "JobID|User|JobName|NNodes|Start|End|State\n9|ann|ior|8|2026-03-03T01:00:00Z|2026-03-03T00:00:00Z|COMPLETED\n"
#: checks to represent all in the test that starts a process per item, where importing Great Expectations is slow
SOME = {"stage jobs", "check stage polls"}
CHECKS = {*SOME, "checks"}
SETTINGS = Settings.model_validate(
    {"filesystems": {"scratch": "default"}, "partitions": {"batch": ["default"]}, "periods": {"methods": ["dft"]}}
)


class Shipping(Engine):
    """Sends items to other processes as bytes and JSON; items selected by `stays` are executed locally."""

    def __init__(self, pool: ProcessPoolExecutor, stays: Callable[[WorkItem], bool]) -> None:
        super().__init__(worker_count=2)
        self.pool = pool
        self.stays = stays
        self.shipped: list[WorkItem] = []

    def submit(self, item: WorkItem, root: Path) -> Future[ItemResult]:
        if self.stays(item):
            return super().submit(item, root)
        codec = TypeAdapter(WorkItem)
        assert codec.validate_json(codec.dump_json(item)) == item
        self.shipped.append(item)
        return self.pool.submit(execute_bytes, root, pickle.dumps(item))


def execute_bytes(root: Path, item: bytes) -> ItemResult:
    """Execute a pickled item."""
    return execute(pickle.loads(item), root)


@contextmanager
def elsewhere(folder: Path, most_items: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """Start processes in another folder that share nothing with this process; each executes at most `most_items`."""
    folder.mkdir()
    with ProcessPoolExecutor(2, get_context("spawn"), os.chdir, (folder,), max_tasks_per_child=most_items) as pool:
        yield pool


@pytest.fixture
def sites(landed_site: Store, tmp_path: Path, quick_checks: None) -> tuple[Store, Store]:
    """Two equal warehouses: one day is released, another is landed with a trace and a faulty job."""
    here, there = (Store(tmp_path / name / "warehouse") for name in ("here", "there"))
    shutil.copytree(landed_site.root, here.root)
    run_night(here, SETTINGS, until=date(2026, 3, 2))
    requests = [
        {"rank": 0, "direction": "write", "request_bytes": 1e6, "start_s": 60.0 * n, "end_s": 60.0 * n + 5}
        for n in range(20)
    ]
    land(here, "trace", trace(started_min=40, modules={"POSIX": {}}, requests=requests, process_count=1))
    (tmp_path / "faulty.sacct").write_text(FAULTY)
    land_files(here, tmp_path / "faulty.sacct", settings=SETTINGS)
    shutil.copytree(here.root, there.root)
    return here, there


def files(store: Store, release: Release) -> dict[str, dict[str, bytes]]:
    """Return the bytes of every file of each table of a release."""
    found = releases.files_of(store, release)
    return {
        table.name: {path.name: path.read_bytes() for path in found.get(table.name, [])}
        for table in list_published_tables()
    }


@pytest.mark.long
def test_other_processes_build_identical_tables(sites: tuple[Store, Store], tmp_path: Path) -> None:
    here, there = sites
    told: list[tuple[str, int]] = []
    wanted = nightly.run_inline(here, SETTINGS, lambda name, count, _: told.append((name, count)))
    with elsewhere(tmp_path / "elsewhere") as pool:
        # Checks are made quick in this process alone.
        engine = Shipping(pool, stays=lambda item: item.is_check)
        shipped: list[tuple[str, int]] = []
        release = nightly.run_inline(
            there, SETTINGS, lambda name, count, _: shipped.append((name, count)), engine=engine
        )
    published = {"release_id": "", "created_at": "", "snapshots": {}}
    assert replace(release, **published) == replace(wanted, **published)
    assert files(there, release) == files(here, wanted)
    assert sorted(shipped) == sorted(told), "each item is reported, in whatever order they end"
    # progress does not show checks of landed rows
    visible = {item.name for item in engine.shipped if not item.step.startswith("check landed")}
    assert visible == {name for name, _ in told if name not in {*CHECKS, "release"}}
    assert any(
        read for item in engine.shipped for read in item.reads if isinstance(read, TableFile) and read.is_released
    )
    paths = [file.path for item in engine.shipped for file in item.writes]
    assert len(set(paths)) == len(paths), "no two items write the same file"


@pytest.mark.long
def test_items_run_in_separate_processes_with_identical_results(sites: tuple[Store, Store], tmp_path: Path) -> None:
    here, there = sites
    quick = run_night(here, SETTINGS)
    with elsewhere(tmp_path / "elsewhere", 1) as pool:
        engine = Shipping(pool, stays=lambda item: item.is_check and item.name not in SOME)
        release = run_night(there, SETTINGS, engine=engine)
    assert {item.name for item in engine.shipped} >= SOME
    found, wanted = files(there, release), files(here, quick)
    for table in list_published_tables():
        # results of checks and quarantined rows differ: checks are stubbed here and real there
        if table not in (QUALITY, QUALITY_DAILY, QUARANTINE, JOBS):
            assert found[table.name] == wanted[table.name], table.name
    assert found[QUARANTINE.name], "the faulty job is taken out"


# ---- the context of a function


def refuse(context: StepContext) -> int:
    raise IosigError(f"no {context.days}")


def build_nothing(context: StepContext) -> int:
    return len(context.files(CLASSES)) + len(context.list_base_files(JOBS))


def item_of(function: Callable[[StepContext], int]) -> WorkItem:
    reads = (TableFile("classes", "a"), TableFile("jobs", "b"), TableFile("jobs", "c", is_released=True))
    place, writes = f"{function.__module__}:{function.__name__}", (TableFile("classes", "d"),)
    return WorkItem("an item", "a step", place, reads, writes, (None,), Settings(), "built", "built/done.json")


def test_completion_marker_is_written_last(tmp_path: Path) -> None:
    item = item_of(refuse)
    with pytest.raises(IosigError, match="None"):
        execute(item, tmp_path)
    assert not (tmp_path / item.marker).exists()
    result = execute(item_of(build_nothing), tmp_path)
    assert (result.name, result.step, result.row_count, result.written) == ("an item", "a step", 2, ())
    assert (tmp_path / item.marker).is_file()


def test_only_declared_tables_can_be_written(tmp_path: Path) -> None:
    context = StepContext(tmp_path, item_of(build_nothing))
    assert context.path(CLASSES) == tmp_path / "d"
    with pytest.raises(ValueError, match="not enough"):
        context.path(JOBS)


@pytest.mark.parametrize(("sizes", "is_smaller"), [((), True), ((5, 4), True), ((5, 5), False), ((None, 9), True)])
def test_item_size_is_the_sum_of_its_file_sizes(
    sizes: tuple[int | None, ...], is_smaller: bool, tmp_path: Path
) -> None:
    for number, size in enumerate(sizes):
        if size is not None:
            (tmp_path / str(number)).write_bytes(bytes(size))
    reads = tuple(TableFile("jobs", str(number)) for number in range(len(sizes)))
    assert replace(item_of(refuse), reads=reads).is_smaller_than(tmp_path, 10) == is_smaller


# ---- step specifications


def test_every_published_table_is_written_by_one_step() -> None:
    written = [table.name for step in order.STEPS for table in step.writes]
    assert len(set(written)) == len(written)
    assert {table.name for table in list_published_tables()} <= set(written)


def test_completion_markers_have_different_names() -> None:
    names = [step.name.replace(" ", "-").replace("/", "") for step in order.STEPS]
    assert len(set(names)) == len(names)
