"""The night extracts signatures from new samples, carries over unchanged signatures, and marks changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.answers.signatures.view import Query, build_view
from iosig.estimates.periods import find_rows
from iosig.estimates.subjects import Subjects
from iosig.flows import executors
from iosig.flows.steps import periods, signatures
from iosig.settings.model import Settings, SignatureSettings
from iosig.warehouse.processes import ProcessExecutor
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.traced_runs import land, trace
from tests.nights import Night, land_files, run_night

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks_throughout")]

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
INTERVAL_S, DURATION_S = 5, 900
GB = 1e9
#: bursts of an application: start, duration and bytes
WAVE = ((100, 40, 40 * GB), (400, 20, 20 * GB), (700, 40, 40 * GB))
GROWN = ((100, 60, 90 * GB), (700, 60, 90 * GB))


@dataclass(frozen=True)
class Ran:
    """A run: its name, start from midnight, bursts, nodes, duration and cluster."""

    name: str
    start_min: float
    bursts: Sequence[tuple[float, float, float]] = WAVE
    nodes: int = 8
    duration_s: int = DURATION_S
    cluster: str = ""


def write_day(folder: Path, name: str, runs: Sequence[Ran], first_min: float, last_min: float) -> list[str]:
    """Write a job log of runs, and polls with their bursts and a little background traffic."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = np.arange(first_min * 60, last_min * 60 + 1, INTERVAL_S)
    total = 5e6 * (edges - edges[0])
    lines = ["JobID|User|JobName|Cluster|Partition|NNodes|Start|End|State"]
    for number, ran in enumerate(runs):
        begun = MIDNIGHT + timedelta(minutes=ran.start_min)
        ended = begun + timedelta(seconds=ran.duration_s)
        lines.append(
            f"{name}{number}|ann|{ran.name}|{ran.cluster}|batch|{ran.nodes}|{begun:%FT%TZ}|{ended:%FT%TZ}|COMPLETED"
        )
        for at, lasting, volume in ran.bursts:
            if at < ran.duration_s:
                total += np.clip((edges - ran.start_min * 60 - at) / lasting, 0, 1) * volume
    jobs, polls = folder / f"{name}.sacct", folder / f"{name}.csv"
    jobs.write_text("\n".join(lines) + "\n")
    pl.DataFrame(
        {
            "polled_at": [f"{MIDNIGHT + timedelta(seconds=float(edge)):%FT%TZ}" for edge in edges[1:]],
            "controller": "c0",
            "read_bytes_per_s": 0.0,
            "write_bytes_per_s": np.diff(total) / INTERVAL_S,
        }
    ).write_csv(polls)
    return [str(jobs), str(polls)]


@dataclass(frozen=True)
class Nights:
    """Two nights of one site, and queries on their releases."""

    store: Store
    first: Release
    second: Release

    def rows(self, query: str, release: Release | None = None, **params: Any) -> list[dict[str, Any]]:
        with open_release(self.store, release or self.second) as connection:
            return connection.sql(query, params=params).pl().to_dicts()

    def one(self, application: str, release: Release | None = None, method: str = "elastic") -> dict[str, Any]:
        (row,) = self.rows(
            "from signatures where application_id = $id and direction = 'write' and method = $method",
            release,
            id=application,
            method=method,
        )
        return row


SETTINGS = Settings(signatures=SignatureSettings(max_sample_count=6, has_merged_sizes=True))


def made(folder: Path, run: Callable[[Store, Settings], Release] = run_night) -> Nights:
    """Return a first day with three applications, and a second day on which one of them changes its writes."""
    store, settings = Store(folder / "warehouse"), SETTINGS
    monday = [
        *(Ran("wave", -1000 + 60 * k) for k in range(6)),
        Ran("wave", -400, duration_s=300),
        *(Ran("wave", -380 + 40 * k, nodes=16) for k in range(2)),
        *(Ran("still", -300 + 30 * k, bursts=()) for k in range(5)),
        *(Ran("rare", -140 + 30 * k) for k in range(2)),
    ]
    tuesday = [Ran("wave", 30 + 40 * k, bursts=GROWN) for k in range(6)]
    land_files(store, *write_day(folder / "site", "a", monday, -1010.0, -5.0), settings=settings)
    trace_wave(store, -1000 + 60)
    first = run(store, settings)
    land_files(store, *write_day(folder / "site", "b", tuesday, 5.0, 300.0), settings=settings)
    return Nights(store, first, run(store, settings))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Nights:
    return made(tmp_path_factory.mktemp("signatures"))


def trace_wave(store: Store, start_min: float) -> str:
    """Land a trace of a run of `wave`, which wrote a tenth more than the servers' polls show."""
    requests = [
        {
            "module": "POSIX",
            "direction": "write",
            "request_bytes": 1.1 * volume,
            "start_s": at,
            "end_s": at + lasting,
        }
        for at, lasting, volume in WAVE
    ]
    record = {"module": "POSIX", "written_bytes": int(110 * GB), "read_bytes": 0, "write_count": len(WAVE)}
    timed = record | {"write_start_s": 100.0, "write_end_s": 740.0}
    return land(
        store,
        "wave",
        trace(
            modules={"POSIX": {}, "DXT_POSIX": {}},
            records=[timed],
            requests=requests,
            started_min=start_min,
            duration_s=float(DURATION_S),
            job_id="a1",
        ),
    )


# ---- first night


def test_missing_bursts_in_plots_match_the_release(nights: Nights) -> None:
    # signatures of all sizes are extracted from resampled runs, but plots show the original runs
    rows = nights.rows("""
        select application_id, filesystem, direction, method, missing_burst_count
        from signatures
        where outcome in ('extracted', 'no_common_bursts') and not application_id like '%/*'
    """)
    assert {row["method"] for row in rows} == {"elastic", "iosi_filtered"}
    for row in rows:
        *asked, count = row.values()
        assert len(build_view(nights.store, nights.second, Query(*asked)).missing_bursts) == count, asked


def test_signature_equals_the_isolated_application(nights: Nights) -> None:
    row = nights.one("ann/wave/8", nights.first)
    assert row["outcome"] == "extracted"
    told = nights.rows(
        "from signatures where application_id = 'ann/wave/8' and direction = 'write' and is_default", nights.first
    )
    assert [one["method"] == "elastic" and one["expected_correlation"] > 0.8 for one in told] == [True]
    assert (row["sample_count"], row["used_sample_count"], row["burst_count"]) == (6, 5, 3)
    assert json.loads(row["outlier_job_ids"]) == ["a6"], "it stopped early"
    assert row["volume_bytes"] == pytest.approx(100 * GB, rel=0.02)
    assert row["duration_s"] == pytest.approx(DURATION_S, abs=INTERVAL_S)
    assert row["background_bytes_per_s"] == pytest.approx(5e6, rel=0.01)
    assert row["is_changed"] is None, "there was no release before"
    bursts = nights.rows(
        "from signature_bursts where application_id = 'ann/wave/8' and direction = 'write' and method = 'elastic'",
        nights.first,
    )
    assert [burst["start_s"] for burst in bursts] == pytest.approx([100, 400, 700], abs=INTERVAL_S)
    assert [burst["support_ratio"] for burst in bursts] == [1.0, 1.0, 1.0]


def test_choices_of_iosi_are_published(nights: Nights) -> None:
    rows = nights.rows("select distinct method, method_parameters from signatures order by method", nights.first)
    elastic, filtered = (json.loads(row["method_parameters"]) for row in rows)
    assert elastic == {"min_run_count": 5}
    assert filtered["iosi"].items() >= {
        "level": 2, "gamma": 0.5, "kappa": 0.9, "wavelet": "dmey", "width_count": 4, "height_count": 5,
        "has_duration_filter": True, "min_outlier_factor": 1.5, "requires_high_crest": True, "ripple_ratio": 0.01,
    }.items()  # fmt: skip


def test_signature_points_are_seconds_and_sum_to_the_volume(nights: Nights) -> None:
    for release in (nights.first, nights.second):
        faults = nights.rows(
            """
            with summed as (
                select application_id, filesystem, direction, method, sum(bytes_per_s) as summed_bytes,
                    count(*) as point_count, max(offset_s) as last_s
                from signature_points group by all
            )
            from signatures full join summed using (application_id, filesystem, direction, method)
            where (outcome = 'extracted') <> (summed_bytes is not null)
                or abs(volume_bytes - summed_bytes) > 1e-6 * summed_bytes
                or point_count <> duration_s or last_s <> duration_s - 1
            """,
            release,
        )
        assert faults == []


def test_missing_signatures_have_an_outcome(nights: Nights) -> None:
    outcomes = {
        (row["application_id"], row["direction"]): row["outcome"]
        for row in nights.rows("from signatures where is_default", nights.first)
    }
    assert outcomes["ann/rare/8", "write"] == "too_few_samples"
    assert outcomes["ann/wave/16", "write"] == "too_few_samples"
    assert outcomes["ann/still/8", "write"] in ("no_io", "no_common_bursts")
    assert outcomes["ann/wave/8", "read"] == "no_io"
    assert nights.one("ann/rare/8", nights.first)["volume_bytes"] is None


def test_node_counts_are_merged_if_enabled(nights: Nights) -> None:
    row = nights.one("ann/wave/*", nights.first)
    assert (row["outcome"], row["burst_count"]) == ("extracted", 3)
    nodes = nights.rows("select distinct node_count from sample_sets where application_id = 'ann/wave/*'", nights.first)
    assert sorted(node["node_count"] for node in nodes) == [8, 16]


def test_signatures_have_periods_and_classes(nights: Nights) -> None:
    for table in ("periods", "classes"):
        rows = nights.rows(f"from {table} where subject_kind = 'application' and subject_id = 'ann/wave/8'")
        assert {(row["direction"], row["basis"]) for row in rows} == {("write", "signature")}
    (kind,) = nights.rows("from classes where subject_kind = 'application' and subject_id = 'ann/wave/8'", nights.first)
    assert kind["outcome"] == "classified"
    assert kind["volume_bytes"] == pytest.approx(nights.one("ann/wave/8", nights.first)["volume_bytes"])


def test_signatures_are_compared_with_traced_runs(nights: Nights) -> None:
    (row,) = nights.rows(
        "from signature_checks where method = 'elastic' and application_id = 'ann/wave/8'", nights.first
    )
    assert row["is_training_run"] is False, "the signature rests on polls"
    assert row["cross_correlation"] > 0.98
    assert row["correlation"] > 0.95
    assert row["traced_bytes"] == pytest.approx(110 * GB)
    assert (row["missed_burst_count"], row["false_burst_count"]) == (0, 0)


# ---- second night


def test_new_samples_update_the_signature_and_report_the_change(nights: Nights) -> None:
    row = nights.one("ann/wave/8")
    assert row["volume_bytes"] == pytest.approx(180 * GB, rel=0.02)
    assert (row["is_changed"], row["removed_burst_count"], row["added_burst_count"]) == (True, 1, 0)
    assert row["relative_volume_change"] == pytest.approx(0.8, rel=0.05)
    assert 0 < row["change_correlation"] < 1


@pytest.mark.long
def test_signature_without_new_samples_is_carried_over(nights: Nights) -> None:
    keys = "application_id = 'ann/wave/16' or application_id = 'ann/rare/8' or application_id = 'ann/still/8'"
    for table in ("signatures", "signature_points", "signature_bursts", "sample_sets"):
        query = f"from {table} where {keys} order by all"
        assert nights.rows(query, nights.first) == nights.rows(query), table


def test_undated_application_rows_are_unique(nights: Nights) -> None:
    for table in ("periods", "classes"):
        twice = nights.rows(
            f"select subject_id from {table} where subject_kind = 'application' "
            f"group by subject_id, filesystem, direction, {'method' if table == 'periods' else 'subject_kind'} "
            "having count(*) > 1"
        )
        assert twice == []


@pytest.mark.long
def test_long_runs_are_truncated_to_the_maximum_duration(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    settings = Settings(signatures=SignatureSettings(max_duration_s=600.0, methods=["elastic"]))
    runs = [Ran("wave", -300 + 40 * k) for k in range(5)]
    land_files(store, *write_day(tmp_path / "site", "a", runs, -310, -5), settings=settings)
    release = run_night(store, settings)
    row = Nights(store, release, release).one("ann/wave/8")
    assert row["duration_s"] == pytest.approx(600, abs=INTERVAL_S)
    assert row["volume_bytes"] == pytest.approx(60 * GB, rel=0.02)


class _Killed(BaseException):
    """An exception that no step may catch."""


@pytest.mark.long
def test_chunks_in_processes_give_equal_signatures_and_resume_after_kill(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "_CHUNK_SETS", 2)
    # only chunks go to processes
    monkeypatch.setattr(executors, "SMALL_BYTES", 1 << 40)
    completed: list[list[str]] = []

    def run_twice(store: Store, settings: Settings) -> Release:
        def report(name: str, *_: object) -> None:
            completed[-1].append(name)
            if name.startswith("signatures ") and len(completed) % 2:
                raise _Killed

        with ProcessExecutor(2) as executor:
            engine = executors.Engine(executor, worker_count=2)
            completed.append([])
            with pytest.raises(_Killed):
                run_night(store, settings, report, engine=engine)
            completed.append([])
            return run_night(store, settings, report, engine=engine)

    found = made(tmp_path, run_twice)
    killed, resumed = completed[:2]
    chunks = {name for name in killed + resumed if name.startswith("signatures ")}
    count = int(killed[-1].rpartition("/")[2])
    assert count > 2
    unreported = {f"signatures {number + 1}/{count}" for number in range(count)} ^ chunks
    assert len(unreported) <= 1, "the other worker may complete a chunk after the kill, without a report"
    assert killed[-1] in chunks
    assert killed[-1] not in resumed
    assert "signatures" in resumed
    for table in ("sample_sets", "signatures", "signature_points", "signature_bursts"):
        query = f"from {table} order by all"
        for one, other in ((nights.first, found.first), (nights.second, found.second)):
            assert nights.rows(query, one) == found.rows(query, other) != []


# ---- periods and classes of signatures


@pytest.mark.long
def test_periods_and_classes_are_recomputed_for_changed_signatures_only(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def spied(found: Subjects, *rest: Any) -> pl.DataFrame:
        judged.extend(found.keys.filter(subject_kind="application")["subject_id"])
        return find_rows(found, *rest)

    monkeypatch.setattr(periods, "find_rows", spied)
    store = Night(nights.store, nights.second).copy(tmp_path / "warehouse")
    wednesday = write_day(tmp_path, "c", [Ran("wave", 330 + 40 * k, nodes=16) for k in range(2)], 325.0, 500.0)
    land_files(store, *wednesday, settings=SETTINGS)
    release = run_night(store, SETTINGS)
    assert set(judged) == {"ann/wave/*"}, "of all sizes together there are new runs, of eight nodes none"

    judged.clear()
    other = SETTINGS.model_copy(update={"networks": SETTINGS.networks.model_copy(update={"max_node_count": 7})})
    anew = run_night(store, other)
    assert {"ann/wave/8", "ann/wave/*"} <= set(judged), "other settings: all is judged anew"
    for table in ("periods", "classes"):
        query = f"from {table} where subject_kind = 'application' order by all"
        kept, made = (Nights(store, nights.first, each).rows(query) for each in (release, anew))
        assert kept == made != []
