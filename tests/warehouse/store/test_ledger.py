"""Test the ledger: an index that equals the manifests or is ignored."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st
from polars.testing import assert_frame_equal

from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import repairing, verifying
from iosig.warehouse.store import landing, ledger
from iosig.warehouse.store.files import Folder
from iosig.warehouse.store.form import mark_form
from iosig.warehouse.store.ledger import LandedIndex, Ledger
from iosig.warehouse.store.manifests import in_folder
from iosig.warehouse.store.store import Store, write_json
from tests.budget import examples
from tests.small_traces import land, write

STEPS = st.lists(st.tuples(st.sampled_from(["land", "anew", "gone", "again", "read"]), st.integers(0, 30)), max_size=12)


def manifest(store: Store, name: str, sequence: int, *, generation: int = 0, table: str = "polls") -> None:
    """Write a manifest of a landing with a file of a table; the file itself is not written."""
    folder = store.landed / name
    folder.mkdir(parents=True)
    part = {"table": table, "path": f"landed/{name}/{table}-0.parquet", "day": f"2018-02-{1 + sequence % 28:02}"}
    part |= {"row_count": 3, "byte_count": 1, "sha256": "", "first": None, "last": None, "longest_interval_s": 2.0}
    told = {"landing_id": name, "sequence": sequence, "generation": generation, "source_file": "a.csv"}
    told |= {"content_sha256": name[:16] * 4, "format": "csv", "landed_at": "2018-03-01", "refused_count": 0}
    write_json(told | {"parts": [part | {"is_shared": False}]}, folder / "landing.json")


def of_manifests(store: Store) -> Ledger:
    """Read all manifests without an index."""
    ledger.forget(store)
    folders = store.files.folders("landed")
    rows = ledger._read_folders(store, sorted(folders.items()))
    return Ledger(store, rows.landings, rows.files)


def same(one: Ledger, other: Ledger) -> None:
    """Assert that two ledgers are equal."""
    for name in ("landings", "files"):
        assert_frame_equal(getattr(one, name).sort(pl.all()), getattr(other, name).sort(pl.all()))
    assert_frame_equal(one.in_force, other.in_force)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(ledger, "_MIN_SEGMENT_LANDINGS", 4)
    return made(tmp_path / "warehouse")


def made(root: Path) -> Store:
    """Return a warehouse of the current format without landings."""
    root.mkdir(exist_ok=True)
    mark_form(Store(root))
    return Store(root)


def fill(store: Store, first: int, count: int) -> None:
    """Write `count` landings."""
    for number in range(first, first + count):
        manifest(store, f"{number:016x}", number)


def segments(store: Store) -> list[int]:
    """Return the number of landings in each segment of the index."""
    head = store.files.content(ledger.HEAD)
    return [] if head is None else [segment["landing_count"] for segment in json.loads(head)["segments"]]


def test_indexed_manifests_are_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 0, 20)
    before = ledger.read(store)
    assert segments(store) == [20]
    read: list[str] = []
    monkeypatch.setattr(ledger, "in_folder", lambda store, name: read.append(name) or in_folder(store, name))
    fill(store, 20, 3)
    after = ledger.read(store)
    assert sorted(read) == [f"{number:016x}" for number in range(20, 23)]
    assert segments(store) == [20], "three more are not worth a segment"
    assert after.landings.height == before.landings.height + 3
    same(after, of_manifests(store))


@hypothesis_settings(max_examples=examples(20), deadline=None)
@given(steps=STEPS)
def test_index_equals_manifests(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    store, last = made(tmp_path_factory.mktemp("warehouse")), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "_MIN_SEGMENT_LANDINGS", 2)
        for what, number in steps:
            last += 1
            there = sorted(store.files.folders("landed"))
            chosen = there[number % len(there)] if there else ""
            if what == "land":
                fill(store, 100 * last, number % 5)
            elif what == "anew" and chosen and "-" not in chosen:
                manifest(store, f"{chosen}-{last}", last, generation=last)
            elif what in ("gone", "again") and chosen:
                shutil.rmtree(store.landed / chosen)
                if what == "again":
                    ledger.read(store)
                    manifest(store, chosen, last, generation=int(chosen.partition("-")[2] or 0))
            told = ledger.read(store)
    same(told, of_manifests(store)) if steps else None


def test_number_of_segments_stays_small(store: Store) -> None:
    for night in range(40):
        fill(store, 10 * night, 5)
        ledger.read(store)
    assert sum(segments(store)) == 200
    assert len(segments(store)) <= 6
    assert len(store.files.matching("ledger/*")) == 2 * len(segments(store)), "what was joined is gone"


@pytest.mark.parametrize("what", ["head", "landings", "files"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "gone"])
def test_damaged_index_is_ignored_and_rebuilt(store: Store, what: str, damage: str) -> None:
    fill(store, 0, 9)
    before = ledger.read(store)
    path = store.root / (ledger.HEAD if what == "head" else store.files.matching(f"ledger/*{what}*")[0])
    content = path.read_bytes()
    path.unlink()
    middle = len(content) // 2
    if damage != "gone":
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"cut": content[:middle], "flipped": flipped, "emptied": b""}[damage])
    assert (what, damage) == ("head", "gone") or not ledger.is_true(store)
    same(ledger.read(store), before)
    assert segments(store) == [9], "it is made anew"
    assert ledger.is_true(store)


def test_wrong_index_is_reported_and_repaired(store: Store) -> None:
    land(store, write(store.root.parent / "traces", 9))
    ledger.read(store)
    (segment,) = ledger._read_index(store)[1]
    wrong = ledger._Rows(segment.rows.landings.with_columns(row_count=pl.col("row_count") + 1), segment.rows.files)
    ledger.forget(store)
    ledger._keep(store, None, [], wrong, segment.rows.landings.select("folder", "mark").clear())
    assert [damage.path for damage in verifying.verify(store)] == [ledger.HEAD]
    assert [mended.path for mended in repairing.repair(store)] == [ledger.HEAD]
    assert verifying.verify(store) == []
    assert ledger.read(store).landings["row_count"].sum() == segment.rows.landings["row_count"].sum()


def test_copied_warehouse_rebuilds_its_index(store: Store, tmp_path: Path) -> None:
    fill(store, 0, 9)
    ledger.read(store)
    shutil.copytree(store.root, tmp_path / "copy")
    copy = Store(tmp_path / "copy")
    assert_frame_equal(ledger.read(copy).in_force.drop("mark"), ledger.read(store).in_force.drop("mark"))
    assert ledger.is_true(copy)


def test_concurrent_index_writers_leave_a_correct_index(store: Store) -> None:
    fill(store, 0, 30)
    with ThreadPoolExecutor(4) as several:
        found = list(several.map(lambda _: ledger.read(store), range(12)))
    for each in found:
        same(each, found[0])
    assert segments(store) == [30]
    assert ledger.is_true(store)


def test_files_of_killed_index_writer_are_removed_eventually(store: Store) -> None:
    fill(store, 0, 9)
    ledger.read(store)
    for name in (f"ledger/{1:010}-0badcafe-files.parquet", f"ledger/{9_000_000_000:010}-0badcafe-files.parquet"):
        store.files.put(name, b"torn")
    fill(store, 9, 9)
    ledger.read(store)
    left = [name for name in store.files.matching("ledger/*") if "0badcafe" in name]
    assert left == [f"ledger/{9_000_000_000:010}-0badcafe-files.parquet"], "who writes just now is left alone"


def test_ledger_is_readable_without_write_permission(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 0, 9)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Folder, "write_file", refused)
    assert ledger.read(store).landings.height == 9
    assert segments(store) == []


def test_traces_have_range_of_days_on_which_they_ended(store: Store) -> None:
    land(store, write(store.root.parent / "traces", 9))
    rows = ledger.read(store).files.filter(pl.col("table") == TRACES.name)
    assert rows.select("first_on", "last_on", "is_undated", "is_shared").rows() == [(None, None, True, True)]
    (path,) = (store.root / path for path in rows["path"])
    dated = (
        pl.read_parquet(path)
        .with_row_index("place")
        .with_columns(
            ended_on=pl.date(2018, 2, 1 + pl.col("place")), started_at=pl.datetime(2018, 2, 1, time_zone="UTC")
        )
    )
    path.unlink()
    dated.drop("place").write_parquet(path)
    ledger.forget(store)
    rows = ledger.read(store).files.filter(pl.col("table") == TRACES.name)
    assert rows.select("first_on", "last_on", "is_undated", "is_untimed").rows() == [
        (date(2018, 2, 1), date(2018, 2, 9), False, False)
    ]
    path.unlink()
    ledger.forget(store)
    rows = ledger.read(store).files.filter(pl.col("table") == TRACES.name)
    assert rows["is_undated"].to_list() == [True], "of what cannot be read nobody knows"


def test_parts_belong_to_requested_landings(store: Store, tmp_path: Path) -> None:
    land(store, write(tmp_path / "traces", 9))
    manifest(store, "f" * 16, 100)
    known = ledger.read(store)
    assert known.parts(TRACES, known.in_force)["landing_id"].to_list() == known.in_force["landing_id"].to_list()[:9]
    two = known.in_force[3:5]
    assert known.parts(TRACES, two)["landing_id"].to_list() == two["landing_id"].to_list()
    assert known.parts(REJECTS, known.in_force).is_empty()
    assert known.having([TRACES])["landing_id"].to_list() == known.in_force["landing_id"].to_list()[:9]
    assert list(known.objects(two)) == [landing.find(store, name) for name in two["landing_id"]]


def test_content_has_all_of_its_generations(store: Store, tmp_path: Path) -> None:
    paths = write(tmp_path / "traces", 9)
    land(store, paths)
    land(store, paths[:1], replace=True)
    land(store, paths[:1], replace=True)
    first = landing.ledger(store)[-1].content_sha256
    known = LandedIndex(store)
    assert [one.generation for one in known.generations(first)] == [0, 1, 2]
    assert known.generations("0" * 64) == []
    other = landing.ledger(store)[2].content_sha256
    assert [one.content_sha256 for one in known.generations(other)] == [other]


def test_damaged_manifest_raises_machine_fault(store: Store) -> None:
    fill(store, 0, 2)
    (store.landed / f"{1:016x}" / "landing.json").write_text("{")
    with pytest.raises(MachineFault, match="damaged"):
        ledger.read(store)
