"""The night publishes the latest extrapolation for each set of traces and rank count, with reasons of refusals."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.answers.single.classes import classify_input
from iosig.cli.summary import extrapolations
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.traces.extrapolation.records import land
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.releases import holds, releases
from iosig.warehouse.releases.reading import count_differences, open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.extrapolations.source import METADATA_KEY
from iosig.warehouse.store.store import Store
from tests.nights import Cli, land_files, query_release, run_night
from tests.warehouse.extrapolation_records import EXTRAPOLATED, REFUSED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks_throughout")]

ROWS = pl.DataFrame(compressed_traces.schema().empty_table())
MENDED = replace(EXTRAPOLATED, process_count=28)


def ask(store: Store, release: Release, query: str = "from extrapolations") -> list[dict[str, object]]:
    return query_release(store, release, query).to_dicts()


@dataclass(frozen=True)
class Nights:
    """Two nights: an extrapolated trace and a refusal, then a successful extrapolation in place of the refusal."""

    store: Store
    first: Release
    second: Release


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Nights:
    """Two nights on which only extrapolations were landed; must not be changed."""
    store = Store(tmp_path_factory.mktemp("extrapolations") / "warehouse")
    land(store, EXTRAPOLATED, "ior-1000.parquet")
    land(store, REFUSED, "ior-28.parquet")
    first = run_night(store)
    land(store, MENDED, "ior-28.parquet")
    return Nights(store, first, run_night(store))


@pytest.fixture
def warehouse(nights: Nights, tmp_path: Path) -> Store:
    """A copy of the warehouse after both nights, which tests may change."""
    shutil.copytree(nights.store.root, tmp_path / "warehouse")
    return Store(tmp_path / "warehouse")


# ---- published rows


@pytest.mark.long
def test_each_trace_set_and_rank_count_has_one_row(nights: Nights) -> None:
    refused, done = sorted(ask(nights.store, nights.first), key=lambda row: str(row["process_count"]), reverse=True)
    assert done == EXTRAPOLATED.row() | {"source_file": "ior-1000.parquet"}
    assert refused == REFUSED.row() | {"source_file": "ior-28.parquet"}


def test_later_extrapolation_replaces_an_earlier_one(nights: Nights) -> None:
    outcomes = {row["process_count"]: row["outcome"] for row in ask(nights.store, nights.second)}
    assert outcomes == {28: "extrapolated", 1000: "extrapolated"}
    differing = count_differences(nights.store, nights.first, nights.second)
    assert ("extrapolations", 2, 0, 0, 1) in differing
    assert {name for name, *_ in differing} == {"extrapolations", "quality", "quality_daily"}


# ---- later landings


@pytest.mark.long
def test_trace_file_landed_elsewhere_gives_the_same_row(nights: Nights, tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "ior-1000.parquet", Store(tmp_path / "elsewhere")
    compressed_traces.write(path, ROWS, {"process_count": "1000", METADATA_KEY: EXTRAPOLATED.text()})
    (arrival,) = land_paths(elsewhere, Settings(), [str(path)], ReadOptions())
    assert (arrival.row_count, arrival.has_refusals) == (1, False)
    assert ask(elsewhere, run_night(elsewhere)) == [EXTRAPOLATED.row() | {"source_file": path.name}]


@pytest.mark.long
def test_trace_file_landed_in_addition_to_its_record_changes_nothing(
    warehouse: Store, nights: Nights, tmp_path: Path
) -> None:
    path = tmp_path / "ior-1000.parquet"
    compressed_traces.write(path, ROWS, {"process_count": "1000", METADATA_KEY: EXTRAPOLATED.text()})
    land_files(warehouse, path)
    assert ask(warehouse, run_night(warehouse)) == ask(warehouse, nights.second)


@pytest.mark.long
def test_night_of_jobs_and_polls_keeps_extrapolations(warehouse: Store, landed_site: Store, nights: Nights) -> None:
    land_files(warehouse, landed_site.root.parent / "site")
    third = run_night(warehouse)
    assert ask(warehouse, third) == ask(warehouse, nights.second)
    assert ask(warehouse, third, "select count(*) as n from jobs") == [{"n": 4}]
    land(warehouse, replace(EXTRAPOLATED, process_count=2000), "ior-2000.parquet")
    fourth = run_night(warehouse)
    assert len(ask(warehouse, fourth)) == 3
    assert fourth.dates == (), "no day is computed anew"
    assert ask(warehouse, fourth, "from jobs order by all") == ask(warehouse, third, "from jobs order by all")


def test_extrapolation_can_be_rolled_back(warehouse: Store, nights: Nights) -> None:
    holds.roll_back(warehouse, nights.first.release_id)
    current = releases.current(warehouse)
    assert current is not None
    assert ask(warehouse, current) == ask(warehouse, nights.first)


def test_damaged_record_is_refused_and_others_land(warehouse: Store, tmp_path: Path) -> None:
    good, bad = tmp_path / "1-good", tmp_path / "2-bad"
    good.write_text(replace(EXTRAPOLATED, process_count=3).text())
    bad.write_text(EXTRAPOLATED.text().replace('"extrapolated"', '"perhaps"'))
    arrivals = land_files(warehouse, tmp_path / "1-good", bad, allows_refusals=True)
    assert [arrival.has_refusals for arrival in arrivals] == [False, True]
    assert arrivals[1].refusal is not None
    assert "outcome is not one of" in arrivals[1].refusal.reason


def test_extrapolation_record_cannot_be_classified_as_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(EXTRAPOLATED.text())
    with pytest.raises(InputRefused, match="neither a series nor a trace"):
        classify_input(path, Settings(), ReadOptions())


# ---- commands and documentation


def test_documented_query_lists_refused_fields_with_reasons(nights: Nights, cli: Cli) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("iosig sql") and "refused_fields" in line]
    _, *arguments = shlex.split(line)
    code, out, _ = cli(
        "--warehouse", nights.store.root, *arguments, "--format", "jsonl", "--release", nights.first.release_id
    )
    assert code == 0
    listed = [json.loads(row) for row in out.splitlines()]
    assert {(row["process_count"], row["outcome"], row["field"], row["reason"]) for row in listed} == {
        (28, refused.outcome, refused.field, refused.reason) for refused in REFUSED.refused_fields
    }


def test_extrapolations_can_be_exported(nights: Nights, cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "extrapolations.parquet"
    code, _, _ = cli("--warehouse", nights.store.root, "export", "extrapolations", "--output", target)
    assert code == 0
    assert pl.read_parquet(target)["process_count"].to_list() == [28, 1000]
    table = target.with_suffix(".csv")
    assert cli("--warehouse", nights.store.root, "export", "extrapolations", "--output", table)[0] == 0
    assert pl.read_csv(table)["rank_counts"].to_list() == ["[8, 12, 16, 24]"] * 2


def test_summary_counts_extrapolations_in_one_line(nights: Nights) -> None:
    with open_release(nights.store, nights.first) as connection:
        assert extrapolations(connection) == [
            "1 of 2 extrapolations gave a trace; `iosig sql 'from extrapolations'` lists them."
        ]


def test_summary_without_extrapolations_is_empty() -> None:
    with duckdb.connect() as connection:
        connection.execute("create table extrapolations (outcome varchar)")
        assert extrapolations(connection) == []
