"""Jobs to follow are found in landed job logs, with their state and file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosig.settings.model import Settings
from iosig.streams.following.jobs import Landings, WatchedJob, find_jobs
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import UsageError
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.streams.following.landed_polls import START, at, land_jobs, land_polls

Record = dict[str, object]


def record(cluster: str | None, start: float | None, end: float | None = None, **more: object) -> Record:
    times = {"started_at": None if start is None else at(start), "ended_at": None if end is None else at(end)}
    return {"cluster": cluster, "job_id": "7", "comment": "fs=scratch", "state": "RUNNING"} | times | more


def test_running_job_is_found_with_its_log_fields(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(store, record("c", 0, user="ann", job_name="ior", partition="batch"))
    (job,) = find_jobs(store, Settings(), "7")
    assert (job.cluster, job.job_id, job.user, job.application, job.state) == ("c", "7", "ann", "ior", "RUNNING")
    assert (job.started_at, job.ended_at, job.filesystem, job.is_running) == (START, None, "scratch", True)
    assert job.followed_id == "c/7 on scratch"


@pytest.mark.parametrize(
    ("text", "state", "ends"),
    [
        ("JobID|Start|End|State|Comment\n7|2026-03-03T12:00:00Z|Unknown|RUNNING|fs=x\n", "RUNNING", False),
        ("JobID|Start|End|State|Comment\n7|2026-03-03T12:00:00Z|2026-03-03T12:09:00Z|TIMEOUT|fs=x\n", "TIMEOUT", True),
        ("03/03/2026 12:00:01;S;7;user=ann queue=q start=1772539200 exec_host=n1/0\n", "RUNNING", False),
        ("03/03/2026 12:09:00;E;7;user=ann start=1772539200 end=1772539740 Exit_status=0\n", "COMPLETED", True),
    ],
)
def test_slurm_and_pbs_logs_show_whether_a_job_runs(tmp_path: Path, text: str, state: str, ends: bool) -> None:
    path, store = tmp_path / "log", Store(tmp_path / "warehouse")
    path.write_text(text)
    assert [arrival.refusal for arrival in land_paths(store, Settings(), [str(path)], ReadOptions())] == [None]
    (job,) = find_jobs(store, Settings(), "7", filesystem="x")
    assert (job.cluster, job.state, job.started_at, job.is_running) == ("default", state, START, not ends)
    assert job.ended_at == (at(540) if ends else None)


def test_record_with_an_end_beats_a_later_record_without(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(store, record("c", 0, 50, state="COMPLETED"))
    land_jobs(store, record("c", 0))
    (job,) = find_jobs(store, Settings(), "7")
    assert (job.ended_at, job.state, job.is_running) == (at(50), "COMPLETED", False)


def test_latest_start_and_running_cluster_are_chosen(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(store, record("c", 0), record("c", 100, 200, state="FAILED"), record("d", 50))
    (job,) = find_jobs(store, Settings(), "7")
    assert (job.cluster, job.started_at) == ("d", at(50))
    (job,) = find_jobs(store, Settings(), "7", "c")
    assert (job.cluster, job.started_at) == ("c", at(100))
    land_jobs(store, record("c", 300))
    with pytest.raises(UsageError, match=r"c: since 2026-03-03 12:05:00Z; d: since 2026-03-03 12:00:50Z.*--cluster"):
        find_jobs(store, Settings(), "7")


def test_latest_of_ended_jobs_is_chosen(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(store, record("c", 0, 10), record("d", 5, 10))
    assert find_jobs(store, Settings(), "7")[0].cluster == "d"
    land_jobs(store, record("c", 5, 10))
    with pytest.raises(UsageError, match="--cluster"):
        find_jobs(store, Settings(), "7")


def test_missing_or_pending_job_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(UsageError, match="No landed job log contains job 7"):
        find_jobs(store, Settings(), "7")
    land_jobs(store, record("c", None, state="PENDING"))
    with pytest.raises(UsageError, match="has not started"):
        find_jobs(store, Settings(), "7")
    with pytest.raises(UsageError, match="of the cluster d"):
        find_jobs(store, Settings(), "7", "d")


def test_file_system_is_found_by_the_rules_of_the_night(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(store, record("c", 0, partition="batch", comment=None))
    with pytest.raises(UsageError, match="--filesystem"):
        find_jobs(store, Settings(), "7")
    land_polls(store, [(10, "a", 1.0, 1.0)], filesystem="b")
    land_polls(store, [(10, "a", 1.0, 1.0)], filesystem="a")
    land_polls(store, [(-10, "a", 1.0, 1.0)], filesystem="old")

    def places(settings: Settings, **given: str) -> list[str]:
        return [job.filesystem for job in find_jobs(store, settings, "7", **given)]

    assert places(Settings()) == ["a", "b"]
    assert places(Settings(partitions={"batch": ["y", "x"]})) == ["x", "y"]
    assert places(Settings(), filesystem="z") == ["z"]
    land_jobs(store, record("c", 0, partition="batch"))
    assert places(Settings(partitions={"batch": ["y"]})) == ["scratch"]
    assert places(Settings(filesystems={"scratch": "snx"})) == ["snx"]


def test_job_step_inherits_the_comment_of_its_job(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(
        store, record("c", 0, user="ann"), record("c", 5, comment=None, job_id="7.0"), record("c", 1, job_id="70")
    )
    (job,) = find_jobs(store, Settings(), "7.0")
    assert (job.started_at, job.user, job.filesystem) == (at(5), "ann", "scratch")
    assert find_jobs(store, Settings(), "7")[0].started_at == START


def test_watched_job_is_updated_when_its_log_lands(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_jobs(store, record("c", 0))
    (job,) = find_jobs(store, Settings(), "7")
    watched = WatchedJob(store, Settings(), job)
    assert watched.look() == job
    land_jobs(store, record("c", 0, 60, state="COMPLETED"), record("d", 0, 90))
    assert (watched.look().ended_at, watched.look().state) == (at(60), "COMPLETED")


def test_replaced_landing_supersedes_the_earlier_one(tmp_path: Path) -> None:
    store, landings = Store(tmp_path), Landings(Store(tmp_path))
    assert landings.look() == []
    land_polls(store, [(10, "a", 1.0, 1.0)])
    (first,) = landings.look()
    assert landings.look() == []
    from tests.streams.following.landed_polls import frame_of

    batch = Batch(POLLS, frame_of([(10, "a", 1.0, 1.0)]))
    landing.land_batches(store, "polls", "polls-csv", [batch], replace=True)
    (second,) = landings.look()
    assert (first.generation, second.generation) == (0, 1)
    assert [lot.landing_id for lot in Landings(store).look()] == [second.landing_id]
