"""Test lots: small traces landed together equal traces landed separately, and a lot is atomic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.warehouse.contracts import table
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.traces import TRACE_MODULES, TRACE_RECORDS, TRACE_REQUESTS, TRACES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases.repairing import repair
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing, lots
from iosig.warehouse.store.manifests import Landing, scans
from iosig.warehouse.store.store import Store
from tests.small_traces import JOBS, TORN, land, rows, write

TABLES = (TRACES, TRACE_MODULES, TRACE_RECORDS, TRACE_REQUESTS, REJECTS)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return write(tmp_path / "traces", 12)


@pytest.fixture
def together(tmp_path: Path, paths: list[str]) -> Store:
    store = Store(tmp_path / "together")
    land(store, paths)
    return store


def alone(root: Path, paths: list[str], monkeypatch: pytest.MonkeyPatch) -> Store:
    """Land each trace in a separate folder."""
    store = Store(root)
    with monkeypatch.context() as patch:
        patch.setattr(lots, "MIN_INPUTS", 1000)
        land(store, paths)
    return store


def known(store: Store) -> list[Landing]:
    """Return all properties of landings except the locations of their rows and the landing times."""
    return [
        replace(lot, landed_at="", lot=None, parts=tuple(sorted((part.table, part.row_count) for part in lot.parts)))
        for lot in landing.ledger(store)
    ]


def placed(store: Store, name: str) -> pl.DataFrame:
    """Return the rows of a table in order, without their positions in the lot's files."""
    return rows(store, table(name)).drop("part_order", "part_row")


def test_rows_equal_rows_of_separate_landings(
    together: Store, paths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = alone(tmp_path / "alone", paths, monkeypatch)
    assert len(list(together.landed.glob("*"))) == 1
    assert len(list(single.landed.glob("*"))) == 12
    assert known(together) == known(single)
    for each in TABLES:
        assert_frame_equal(placed(together, each.name), placed(single, each.name))


def test_each_trace_is_identified_by_content(together: Store, paths: list[str]) -> None:
    landings = landing.ledger(together)
    assert [lot.source_file for lot in landings] == [Path(path).name for path in paths]
    assert [lot.sequence for lot in landings] == list(range(1, 13))
    assert all(landing.find(together, lot.landing_id) == lot for lot in landings)
    assert landing.find(together, "0" * 16) is None
    again = land(together, paths)
    assert [one.landed is not None and one.landed.is_new for one in again] == [False] * 12
    assert len(list(together.landed.glob("*"))) == 1


def test_replaced_trace_supersedes_its_rows_in_the_lot(together: Store, paths: list[str]) -> None:
    before = placed(together, "trace_requests")
    land(together, paths[3:4], replace=True)
    after = placed(together, "trace_requests")
    assert_frame_equal(after.drop("landing_id"), before.drop("landing_id"), check_row_order=False)
    latest = landing.ledger(together)[-1]
    assert (latest.generation, latest.lot, latest.source_file) == (1, None, Path(paths[3]).name)
    assert set(after["landing_id"]) == {lot.landing_id for lot in landing.ledger(together)}
    scanned = scans(
        together,
        TRACE_REQUESTS,
        [(lot, part) for lot in landing.ledger(together) for part in lot.parts if part.table == "trace_requests"],
    )
    assert len(scanned) == 2
    assert sum(frame.height for frame in pl.collect_all(scanned)) == before.height


def test_refused_trace_does_not_affect_others(tmp_path: Path, paths: list[str]) -> None:
    bad = Path(paths[5])
    bad.write_bytes(b'{"read_sync": {"bandwidth": {"b_rank_avr": 7}}}\n')
    Path(paths[7]).write_bytes(Path(paths[7]).read_bytes() + TORN)
    store = Store(tmp_path / "warehouse")
    arrivals = land(store, paths, allows_refusals=True)
    assert [one.name for one in arrivals] == paths
    refused = [one.name for one in arrivals if one.refusal]
    told = rows(store, REJECTS)
    assert set(refused) <= {str(bad)}
    assert set(told["source_file"]) == {bad.name, Path(paths[7]).name}
    assert dict(zip(told["source_file"], told["landing_id"], strict=True)) == {
        lot.source_file: lot.landing_id for lot in landing.ledger(store) if lot.refused_count
    }


def test_order_of_inputs_is_kept(tmp_path: Path, paths: list[str]) -> None:
    jobs = tmp_path / "jobs.sacct"
    jobs.write_text(JOBS)
    store = Store(tmp_path / "warehouse")
    named = [*paths[:9], str(jobs), *paths[9:], paths[0]]
    arrivals = land(store, named)
    assert [one.name for one in arrivals] == named
    assert arrivals[-1].landed is not None
    assert not arrivals[-1].landed.is_new
    in_order = [lot.source_file for lot in landing.ledger(store)]
    assert in_order == [Path(name).name for name in named[:-1]]
    assert [lot.lot is None for lot in landing.ledger(store)] == [False] * 9 + [True] * 4


def test_full_lot_is_landed(tmp_path: Path, paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lots, "MAX_INPUTS", 10)
    monkeypatch.setattr(lots, "MIN_INPUTS", 2)
    store = Store(tmp_path / "warehouse")
    land(store, paths)
    assert len(list(store.landed.glob("lot-*"))) == 2
    assert [lot.source_file for lot in landing.ledger(store)] == [Path(path).name for path in paths]


def test_trace_landed_by_two_processes_counts_once(tmp_path: Path, paths: list[str]) -> None:
    """Both check for known inputs before either has landed."""
    store = Store(tmp_path / "warehouse")
    first, second = lots.Lot(store), lots.Lot(store)
    for lot, own in ((first, paths[:10]), (second, paths[2:])):
        assert all(lot.add(Path(path), lambda source: landing.Reading()) for path in own)
    assert [len(list(lot.land())) for lot in (first, second)] == [10, 10]
    assert len(landing.ledger(store)) == 12
    assert [lot.sequence for lot in landing.ledger(store)] == [*range(1, 11), 19, 20]
    assert rows(store, TRACES).height == 12
    assert landing.find(store, landing.ledger(store)[5].landing_id) == landing.ledger(store)[5]


def test_damaged_lot_is_detected_and_can_be_landed_again(together: Store, paths: list[str]) -> None:
    before = placed(together, "trace_requests")
    (path,) = together.landed.glob("lot-*/trace_requests.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    assert [Path(damage.path).name for damage in verify(together, is_all=True)] == ["trace_requests.parquet"]
    repair(together)
    assert landing.ledger(together) == []
    land(together, paths)
    assert_frame_equal(placed(together, "trace_requests"), before)


@pytest.mark.parametrize("text", [b"{torn", b'{"landings": [{}], "files": {}}', b'{"landings": 7, "files": {}}'])
def test_invalid_manifest_of_lot_is_refused(together: Store, text: bytes) -> None:
    (path,) = together.landed.glob("lot-*/landing.json")
    path.unlink()
    path.write_bytes(text)
    with pytest.raises(MachineFault, match="damaged"):
        landing.ledger(together)
