"""Test Darshan logs from file to landed rows, compared with the output of Darshan's tools."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.warehouse.contracts import TABLES, frames
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.darshan import rows as darshan_rows, source
from iosig.warehouse.sources.files import child
from iosig.warehouse.sources.protocol import Head, Reading
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.warehouse.sources import darshan_tables
from tests.warehouse.sources.darshan_tables import SHIPPED, tables_of

Tables = dict[str, pl.DataFrame]
MODULES = ("POSIX", "MPIIO", "STDIO", "H5D", "DFS", "DAOS")
DIRECTIONS = {"read": "read", "write": "written"}


@pytest.fixture(scope="module")
def landed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tables]:
    """Land all real logs and return their rows as read from the store's Parquet files."""
    store = Store(tmp_path_factory.mktemp("store"))
    found = {}
    for path in [*(shared_data / "darshan").glob("*.darshan"), *(shared_data / "dxt").glob("*.darshan")]:
        parts = landing.land(store, path, lambda _: Reading()).landing.parts
        tables: dict[str, list[pl.DataFrame]] = {}
        for part in parts:
            tables.setdefault(part.table, []).append(pl.read_parquet(store.root / part.path))
        found[path.name] = {name: pl.concat(rows) for name, rows in tables.items()}
    return found


def golden(shared_data: Path) -> Iterator[dict[str, str]]:
    with (shared_data / "darshan" / "golden.csv").open() as file:
        yield from csv.DictReader(file)


def rows(tables: Tables, name: str) -> pl.DataFrame:
    return tables.get(name, frames.empty(next(table for table in TABLES if table.name == name)))


# ---- comparison with Darshan's tools


@pytest.mark.slow
def test_bytes_of_modules_match_darshan_parser(shared_data: Path, landed: dict[str, Tables]) -> None:
    checked = 0
    for row in golden(shared_data):
        records = rows(landed[row["log"]], "trace_records")
        modules = {told["module"]: told for told in rows(landed[row["log"]], "trace_modules").to_dicts()}
        for module, told in itertools.product(MODULES, DIRECTIONS.values()):
            wanted = row[f"{module}_{told}"]
            assert (module in modules) >= bool(wanted), (row["log"], module)
            if wanted:
                assert records.filter(module=module)[f"{told}_bytes"].sum() == int(wanted)
                counter = f"{module}_BYTES_{'READ' if told == 'read' else 'WRITTEN'}"
                assert json.loads(modules[module]["counters"])[counter] == int(wanted)
                checked += 1
    assert checked == 64


@pytest.mark.slow
def test_heatmaps_match_darshan_parser(shared_data: Path, landed: dict[str, Tables]) -> None:
    checked = 0
    for row in golden(shared_data):
        heatmaps = rows(landed[row["log"]], "trace_heatmaps")
        assert heatmaps.is_empty() == (not row["HM_nbins"])
        if heatmaps.height:
            assert heatmaps["step_count"].unique().to_list() == [int(row["HM_nbins"])]
            assert heatmaps["interval_s"].unique().to_list() == [float(row["HM_width"])]
            assert heatmaps["bin_bytes"].list.len().unique().to_list() == [int(row["HM_nbins"])]
        for module, (direction, told) in itertools.product(MODULES, DIRECTIONS.items()):
            if wanted := row.get(f"HM_{module}_{told}"):
                of_module = heatmaps.filter(module=module, direction=direction)
                assert of_module["bin_bytes"].list.sum().sum() == int(wanted)
                checked += 1
    assert checked == 20


def test_segments_match_darshan_parser(shared_data: Path, landed: dict[str, Tables]) -> None:
    checked = 0
    for row in golden(shared_data):
        requests = rows(landed[row["log"]], "trace_requests")
        assert requests["request"].to_list() == list(range(requests.height))
        for module, direction in itertools.product(("POSIX", "MPIIO"), DIRECTIONS):
            found = requests.filter(module=module, direction=direction)
            assert found.height == int(row[f"DXT{module[0]}_{direction}_segs"] or 0)
            assert found["request_bytes"].sum() == int(row[f"DXT{module[0]}_{direction}_bytes"] or 0)
            checked += found.height
        assert "rejects" not in landed[row["log"]]
    assert checked > 500_000


def test_runs_match_darshan_parser(shared_data: Path, landed: dict[str, Tables]) -> None:
    for row in golden(shared_data):
        run = landed[row["log"]]["traces"].row(0, named=True)
        modules = rows(landed[row["log"]], "trace_modules")
        assert run["process_count"] == int(row["nprocs"])
        assert run["tracer_version"] == row["log_ver"]
        # The library subtracts seconds since 1970 in double precision.
        assert run["duration_s"] == pytest.approx(float(row["run_time"]), abs=darshan_rows.RESOLUTION_S)
        assert int(run["started_at"].timestamp()) == int(row["start"])
        assert int(run["ended_at"].timestamp()) == int(row["end"])
        assert run["ended_on"] == run["ended_at"].date()
        partial_modules = modules.filter("is_partial")["module"].to_list()
        assert partial_modules == [name for name in row["partial"].split(";") if name]
        assert modules.filter("is_partial")["outcome"].to_list() == ["partial"] * len(partial_modules)


def test_every_module_of_real_logs_is_read_except_mpi(landed: dict[str, Tables]) -> None:
    outcomes = pl.concat([tables["trace_modules"] for tables in landed.values() if "trace_modules" in tables])
    strange = outcomes.filter(~pl.col("outcome").is_in(["sound", "partial"]))
    assert strange["module"].to_list() == ["APMPI"]
    assert strange["outcome"].to_list() == ["unsupported"]


@pytest.mark.parametrize("path", sorted(SHIPPED.rglob("*.darshan")), ids=lambda path: path.name[:25])
def test_logs_of_the_wheel_are_read(path: Path) -> None:
    tables = tables_of(path)
    assert set(tables["trace_modules"]["outcome"]) <= {"sound", "partial"}
    assert tables["trace_records"].height > 0


# ---- consistency between layers


def test_heatmaps_agree_with_counters_within_rounding(landed: dict[str, Tables]) -> None:
    """Bytes are spread over bins and rounded in each: by at most a byte for each operation and bin."""
    tables = landed["e3sm_io_heatmap_only.darshan"]
    records, heatmaps = tables["trace_records"], tables["trace_heatmaps"]
    assert set(heatmaps["module"]) == {"POSIX", "MPIIO", "STDIO"}
    for module, (direction, told) in itertools.product(("POSIX", "MPIIO", "STDIO"), DIRECTIONS.items()):
        counted = records.filter(module=module)
        binned = heatmaps.filter(module=module, direction=direction)["bin_bytes"].list.sum().sum()
        operations = counted[f"{direction}_count"].sum()
        assert abs(binned - counted[f"{told}_bytes"].sum()) <= operations
    assert abs(heatmaps.filter(module="MPIIO")["bin_bytes"].list.sum().sum() - (25722208 + 77443304344)) == 5241 + 7


def test_heatmaps_agree_with_segments(landed: dict[str, Tables]) -> None:
    """Each rank's bytes per heat map bin equal its segments, spread evenly over their time."""
    checked = 0
    for tables in landed.values():
        if not {"trace_heatmaps", "trace_requests"} <= tables.keys():
            continue
        for told in tables["trace_heatmaps"].filter(pl.col("module").is_in(["POSIX", "MPIIO"])).to_dicts():
            segments = tables["trace_requests"].filter(**{name: told[name] for name in ("module", "rank", "direction")})
            if segments.height:
                spread = spread_over_bins(segments, told["interval_s"], told["step_count"])
                assert np.abs(spread - told["bin_bytes"]).max() <= 1 + segments.height
                checked += 1
    assert checked >= 40


def spread_over_bins(
    segments: pl.DataFrame, width_s: float, count: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    bins = np.zeros(count)
    for began, ceased, size in segments.select("start_s", "end_s", "request_bytes").iter_rows():
        if ceased <= began:
            bins[min(count - 1, int(began / width_s))] += size
            continue
        for at in range(int(began / width_s), min(count, int(ceased / width_s) + 1)):
            overlap = min(ceased, (at + 1) * width_s) - max(began, at * width_s)
            bins[at] += size * max(0.0, overlap) / (ceased - began)
    return bins


@pytest.mark.parametrize(
    ("log", "module", "direction", "bursts"),
    [
        ("ior_mpiio_shared_n8_i8_d3", "MPIIO", "write", 8),
        ("ior_mpiio_shared_n8_i8_d3", "MPIIO", "read", 8),
        ("ior_posix_fpp_n8_i12_d3", "POSIX", "write", 12),
    ],
)
def test_segments_reproduce_known_bursts(
    shared_data: Path, landed: dict[str, Tables], log: str, module: str, direction: str, bursts: int
) -> None:
    requests = landed[f"{log}.darshan"]["trace_requests"].filter(module=module, direction=direction).sort("start_s")
    latest = np.maximum.accumulate(requests["end_s"].to_numpy())
    starts = np.flatnonzero(np.insert(requests["start_s"].to_numpy()[1:] - latest[:-1] > 1.0, 0, True))
    volumes = np.add.reduceat(requests["request_bytes"].to_numpy(), starts)
    wanted = pl.read_csv(shared_data / "dxt" / f"{log}.{direction}_bursts.csv")
    assert len(starts) == wanted.height == bursts
    assert requests["start_s"].to_numpy()[starts].tolist() == wanted["onset"].to_list()
    assert latest[np.append(starts[1:] - 1, len(latest) - 1)].tolist() == wanted["end"].to_list()
    assert volumes.tolist() == wanted["bytes"].to_list()


# ---- ranks, hosts and targets


def test_requests_link_ranks_hosts_and_targets(landed: dict[str, Tables]) -> None:
    (tables,) = (tables for name, tables in landed.items() if name.startswith("jeanbez"))
    run = tables["traces"].row(0, named=True)
    assert (run["user"], run["application"], run["job_id"]) == ("jeanbez", "8_benchmark_parallel", "45195555")
    posix = tables["trace_requests"].filter(module="POSIX")
    assert posix.select("rank", "host").unique().height == 1024
    assert posix["host"].n_unique() == 64
    assert posix["ost"].n_unique() == 41
    assert posix.select("host", "ost").unique().height == 734
    (file,) = tables["trace_files"].filter(pl.col("osts").is_not_null()).to_dicts()
    assert (len(file["osts"]), file["stripe_bytes"], file["filesystem_kind"]) == (64, 1 << 25, "lustre")
    assert file["path"].startswith(file["mount"] + "/")
    for row in posix.sample(200, seed=1).to_dicts():
        assert row["ost"] == file["osts"][row["offset_bytes"] // file["stripe_bytes"] % 64]


def test_unrecorded_offsets_are_null(landed: dict[str, Tables]) -> None:
    for name, is_known in (("mpi-io-test-ppc64-3.1.3.darshan", False), ("partial_data_dxt.darshan", True)):
        offsets = landed[name]["trace_requests"].filter(module="MPIIO")["offset_bytes"]
        assert offsets.is_null().all() != is_known
        assert offsets.is_not_null().all() == is_known


# ---- isolation of a bad log


@pytest.mark.slow
def test_log_that_crashes_or_hangs_library_does_not_affect_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(darshan_rows, "reading", darshan_tables)
    monkeypatch.setattr(darshan_rows, "arrays_from_child", partial(child.arrays_from_child, timeout_s=5.0))
    good = SHIPPED / "tests" / "input" / "sample.darshan"
    names = [f"{number}-{kind}.darshan" for number in range(2) for kind in ("good", "crashing", "good", "good")]
    names.insert(5, "hanging.darshan")
    whole = tables_of(good)
    refused = []
    for name in names:
        shutil.copy(good, tmp_path / name)
        try:
            found = tables_of(tmp_path / name)
            assert all(found[table].equals(whole[table]) for table in whole)
        except InputRefused as refusal:
            refused.append((name, refusal.reason))
    assert [name for name, _ in refused] == [name for name in names if "good" not in name]
    assert all(("SIGSEGV" in reason) == ("crashing" in name) for name, reason in refused)


def test_damaged_logs_land_as_refused_or_flagged(shared_data: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for path in sorted((shared_data / "darshan" / "bad").iterdir()):
        try:
            parts = landing.land(store, path, lambda _: Reading()).landing.parts
        except InputRefused:
            continue
        (part,) = (part for part in parts if part.table == "trace_modules")
        assert set(pl.read_parquet(store.root / part.path)["outcome"]) > {"unreadable"}, path.name
    assert len(landing.ledger(store)) == len(list((shared_data / "darshan" / "bad").iterdir()))


# ---- recognition


@pytest.mark.parametrize(
    ("start", "is_ours"),
    [
        (b"3.41\0\0\0\0\x2f\x35\x64\0\0\0\0\0", True),
        (b"3.10\0\0\0\0\0\0\0\0\0\x64\x35\x2f", True),
        (b"9.99\0\0\0\0xxxxxxxx", True),
        (b"3.4100000000", False),
        (b"time_s,read_bytes\n", False),
        (b"", False),
    ],
)
def test_logs_are_recognized_by_their_first_bytes(start: bytes, is_ours: bool) -> None:
    assert source.sniff(Head("a.csv", start)) == is_ours


def test_log_of_darshan_2_is_refused_with_its_own_tool_as_remedy(tmp_path: Path) -> None:
    path = tmp_path / "old.darshan.gz"
    path.write_bytes(gzip.compress(b"2.05\0\0\0\0" + (6567223).to_bytes(8, "little") + bytes(1024)))
    with pytest.raises(InputRefused, match=r"format 2\.05") as refused:
        list(source.read(path, Reading()))
    assert "Darshan 2" in refused.value.remedy
