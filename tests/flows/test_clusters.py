"""Clusters that share a file system have their own applications, unless a setting declares them a single machine.

On both, ann runs `wave` on 8 nodes six times. On titan it writes 100 GB in three bursts, on smoky 180 GB in two.
"""

from __future__ import annotations

from typing import Any

import pytest

from iosig.answers.advice import feed
from iosig.settings.model import Settings
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.test_signatures import GROWN, Ran, write_day
from tests.nights import land_files, query_release, run_night

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks_throughout")]

TITAN, SMOKY = "ann@titan/wave/8", "ann@smoky/wave/8"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a warehouse with a day of runs on the two clusters, which alternate."""
    folder = tmp_path_factory.mktemp("clusters")
    runs = [Ran("wave", -1000 + 60 * k, cluster="titan") for k in range(6)]
    runs += [Ran("wave", -970 + 60 * k, bursts=GROWN, cluster="smoky") for k in range(6)]
    store = Store(folder / "warehouse")
    land_files(store, *write_day(folder / "site", "a", runs, -1010.0, -5.0))
    return store


def query(store: Store, release: Release, sql: str) -> list[tuple[Any, ...]]:
    return query_release(store, release, sql).rows()


@pytest.fixture(scope="module")
def apart(store: Store, quick_checks_throughout: None) -> Release:
    return run_night(store)


@pytest.fixture(scope="module")
def joined(store: Store, apart: Release) -> Release:
    """Return the next release, with both clusters under one name."""
    return run_night(store, Settings(clusters={"smoky": "titan"}))


def test_each_cluster_has_its_own_application(store: Store, apart: Release) -> None:
    applications = query(store, apart, "select application_id, machine, sample_count from applications order by all")
    assert applications == [(SMOKY, "smoky", 6), (TITAN, "titan", 6)]
    written = "from signatures where direction = 'write' and is_default order by all"
    columns = "application_id, outcome, burst_count, sample_count, volume_bytes / 1e9"
    signatures = query(store, apart, f"select {columns} {written}")
    assert [row[:-1] for row in signatures] == [(SMOKY, "extracted", 2, 6), (TITAN, "extracted", 3, 6)]
    assert [row[-1] for row in signatures] == pytest.approx([180, 100], rel=0.05)
    for table in ("classes", "periods"):
        subjects = query(
            store, apart, f"select distinct subject_id from {table} where subject_kind = 'application' order by all"
        )
        assert subjects == [(SMOKY,), (TITAN,)]


@pytest.mark.parametrize("table", ["jobs", "samples", "sample_sets", "attributed_io", "slowdowns"])
def test_rows_of_a_run_have_the_application_of_its_cluster(store: Store, apart: Release, table: str) -> None:
    pairs = query(store, apart, f"select distinct cluster, application_id from {table} order by all")
    assert pairs == [("smoky", SMOKY), ("titan", TITAN)]


def test_feed_names_the_machine(store: Store, apart: Release) -> None:
    entries = feed.build_feed(store, apart, "signatures", valid_days=36_500.0).entries
    named = {(entry["application_id"], entry["machine"], entry["user"], entry["application"]) for entry in entries}
    assert named == {(SMOKY, "smoky", "ann", "wave"), (TITAN, "titan", "ann", "wave")}


def test_clusters_of_one_machine_share_an_application(store: Store, joined: Release) -> None:
    applications = query(store, joined, "select application_id, machine, sample_count from applications")
    assert applications == [(TITAN, "titan", 12)]
    assert query(store, joined, "select distinct application_id, sample_count from signatures") == [(TITAN, 12)]
    clusters = query(store, joined, "select cluster, count(*) from jobs where application_id is not null group by all")
    assert sorted(clusters) == [("smoky", 6), ("titan", 6)]
