"""Slurm is polled repeatedly: each run lands once despite delays, failures and kills; the queue lands each time."""

from __future__ import annotations

import os
import random
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from iosig.settings.model import Settings
from iosig.streams import slurm as live
from iosig.streams.landing import Arrival
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.sources.jobs import slurm_commands
from iosig.warehouse.store import landing, ledger
from iosig.warehouse.store.store import Store
from tests import servers
from tests.fake_slurm import FakeSlurm, fake_slurm
from tests.nights import run_night

pytestmark = pytest.mark.slow

DAY_S = 86_400
NOW = datetime(2026, 3, 10, 2, 30, tzinfo=UTC)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return fake_slurm(tmp_path / "bin", monkeypatch)


def land(store: Store, now: datetime, since: datetime | None = None, **told: float) -> list[Arrival]:
    return [*live._land_sacct(store, Settings.model_validate({"live": told}), since, now)]


def landed(store: Store) -> pl.DataFrame:
    paths = ledger.read(store).files.filter(pl.col("table") == JOB_RECORDS.name)["path"]
    return pl.concat([pl.read_parquet(store.local(path)) for path in paths], how="diagonal")


def runs(store: Store) -> set[tuple[str, datetime | None]]:
    """Return the known runs: each id, and its end."""
    known = landed(store).group_by("job_id").agg(pl.col("ended_at").max())
    return set(known.iter_rows())


def epoch(at: datetime) -> int:
    return round(at.timestamp())


def ends(slurm: FakeSlurm) -> set[tuple[str, datetime | None]]:
    jobs = [job for job in slurm.jobs if job["start"]]
    return {(str(job["id"]), datetime.fromtimestamp(job["end"], UTC) if job["end"] else None) for job in jobs}


def test_repeated_polls_converge_to_the_truth_without_duplicates(slurm: FakeSlurm, tmp_path: Path) -> None:
    draw, store = random.Random(7), Store(tmp_path / "warehouse")
    jobs = []
    for job_id in range(1, 81):
        start = epoch(NOW) + draw.randrange(-2 * DAY_S, 2 * DAY_S)
        jobs.append((job_id, start - draw.randrange(600), start, start + draw.randrange(10, 2 * DAY_S)))
    for night in range(3):
        now = NOW + timedelta(days=night)
        # jobs that ended less than an hour ago are not in the accounting yet
        for job_id, submit, start, end in jobs:
            if submit <= epoch(now):
                is_over = end <= epoch(now) - 3_600
                slurm.add(job_id, submit, start if start <= epoch(now) else 0, end if is_over else 0)
        slurm.tell(has_json=bool(night % 2))
        land(store, now, backfill_days=2)
        assert runs(store) == ends(slurm), f"night {night}"
    rows = landed(store)
    told = rows.filter(pl.col("ended_at").is_not_null())
    # the two output formats write an exit code in different ways, so that a row may land in both
    assert set(told.group_by("job_id").len()["len"]) <= {1, 2}
    assert not rows["state"].is_in(["PENDING"]).any()


def test_only_new_records_land(slurm: FakeSlurm, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    slurm.add(1, epoch(NOW) - 500, epoch(NOW) - 400)
    slurm.add(2, epoch(NOW) - 500)
    (first,) = land(store, NOW, backfill_days=0.5)
    (second,) = land(store, NOW + timedelta(minutes=5))
    slurm.add(1, epoch(NOW) - 500, epoch(NOW) - 400, epoch(NOW) + 400)
    (third,) = land(store, NOW + timedelta(minutes=10))
    assert [one.row_count for one in (first, second, third)] == [1, 0, 1]
    assert (second.line(), second.has_refusals) == ("sacct-20260310T023500Z: no new data", False)
    assert landed(store)["state"].sort().to_list() == ["COMPLETED", "RUNNING"]
    # --since queries and lands everything from that time again
    again = land(store, NOW + timedelta(minutes=15), since=NOW - timedelta(hours=30))
    assert [one.row_count for one in again] == [0, 1]
    asked = [call[3:5] for call in slurm.calls()[-2:]]
    assert asked[0] == ["--starttime=2026-03-08T14:30:00", "--endtime=2026-03-09T20:30:00"]


def test_failed_or_killed_call_is_retried(slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "warehouse")
    slurm.add(1, epoch(NOW) - 500, epoch(NOW) - 400, epoch(NOW) - 300)
    slurm.tell(fault="slurmdbd: Connection refused")
    (refused,) = land(store, NOW, backfill_days=0.5)
    assert "Connection refused" in refused.line()
    slurm.tell(fault="")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        # the position is written by then, and the rows are not
        patched.setattr(landing, "land_batches", killed)
        with pytest.raises(KeyboardInterrupt):
            land(store, NOW, backfill_days=0.5)
    assert [one.row_count for one in land(store, NOW + timedelta(minutes=1), backfill_days=0.5)] == [1]
    assert runs(store) == ends(slurm)


def test_hidden_names_are_not_stored_in_positions(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for user in ("ann", "bob"):
        store = Store(tmp_path / user)
        slurm.add(1, epoch(NOW) - 500, epoch(NOW) - 400, epoch(NOW) - 300, user=user)
        monkeypatch.setenv("IOSIG_PSEUDONYM_KEY", user * 20)
        settings = Settings.model_validate(
            {
                "privacy": {"is_pseudonymized": True, "key_variable": "IOSIG_PSEUDONYM_KEY"},
                "live": {"backfill_days": 0.5},
            }
        )
        for later_h, row_count in enumerate((1, 0)):
            (arrival,) = live._land_sacct(store, settings, None, NOW + timedelta(hours=later_h))
            assert arrival.row_count == row_count
        assert user not in landed(store)["user"].to_list()
        found.append(live._ResponseHashes.decode(live.position(store, "sacct").cursor["seen"], None).before.to_list())
    assert len(found[0]) == 1
    assert found[0] != found[1]


@pytest.mark.long
@pytest.mark.usefixtures("quick_checks")
def test_night_publishes_running_and_pending_jobs(slurm: FakeSlurm, tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    settings = Settings.model_validate({"schedule": {"slurm": True}, "live": {"backfill_days": 0.1}})
    now = epoch(datetime.now(UTC))
    slurm.add(1, now - 500, now - 400, now - 300)
    slurm.add(2, now - 300, limit=30)
    for has_json in (True, False):
        slurm.tell(has_json=has_json)
        release = run_night(store, settings)
        # a later second
        slurm.add(2, now - 300, now - 200, limit=30)
    with open_release(store, release) as connection:
        query = (
            "select job_id, queue_state, time_limit_s, epoch(observed_at - submitted_at) > 290 from queued_jobs "
            "order by 2"
        )
        assert connection.sql(query).fetchall() == [("2", "PENDING", 1800.0, True), ("2", "RUNNING", 1800.0, True)]
        assert connection.sql("select job_id, state from jobs order by 1").fetchall() == [
            ("1", "COMPLETED"),
            ("2", "RUNNING"),
        ]


def test_queue_lands_on_every_call(slurm: FakeSlurm, tmp_path: Path) -> None:
    store, settings = Store(tmp_path / "warehouse"), Settings.model_validate({"live": {"backfill_days": 0.1}})
    now = epoch(datetime.now(UTC))
    slurm.add(1, now - 500, now - 400)
    slurm.add(2, now - 300)
    found = [*live.land_slurm(store, settings), live._land_squeue(store, settings, datetime.now(UTC) + timedelta(1))]
    assert [one.row_count for one in found] == [1, 2, 2]
    slurm.tell(fault="slurm_load_jobs error: Unable to contact slurm controller")
    refused = [*live.land_slurm(store, settings)]
    assert [one.name for one in refused] == ["sacct", "squeue"]
    assert all("Unable to contact slurm controller" in one.line() for one in refused)


@pytest.mark.long
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("has_json", [True, False])
def test_real_slurm_cluster_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_json: bool) -> None:
    if not has_json:
        monkeypatch.setattr(slurm_commands, "_is_sound_json", lambda _: False)
    store, settings = Store(tmp_path / "warehouse"), Settings.model_validate({"live": {"backfill_days": 0.01}})
    with servers.mariadb() as database, servers.slurm(database) as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        for told in (
            ["-Jio|r", "--wrap=srun sleep 1"],
            ["--array=1-3%1", "--wrap=sleep 1"],
            ["--begin=now+1hour", "--wrap=sleep 1"],
        ):
            subprocess.run(["sbatch", "--output=/dev/null", *told], check=True, capture_output=True)
        deadline = time.monotonic() + 120
        while len(truth := [one for one in told_by_sacct() if one[1] == "COMPLETED"]) < 4:
            assert time.monotonic() < deadline
            assert not any(one.refusal for one in live.land_slurm(store, settings))
        assert not any(one.refusal for one in live.land_slurm(store, settings))
        # all records have landed
        assert [one.landed for one in live._land_sacct(store, settings, None, datetime.now(UTC))] == [None]
        release = run_night(store, settings)
    ended = landed(store).filter(pl.col("ended_at").is_not_null())
    assert ended.select("job_id", "started_at", "ended_at", "state").is_unique().all()
    with open_release(store, release) as connection:
        query = """
            select job_id, state, strftime(started_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S'),
                strftime(ended_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S')
            from jobs where job_kind in ('allocation', 'array_task') and ended_at is not null
        """
        assert sorted(connection.sql(query).fetchall()) == sorted(truth)
        waiting = connection.sql("select distinct queue_state, wait_reason from queued_jobs where job_id = '3'")
        assert ("PENDING", "BeginTime") in waiting.fetchall()
        steps = connection.sql("select application from jobs where job_kind = 'step'").fetchall()
        assert steps == [("sleep",)]


def told_by_sacct() -> list[tuple[str, ...]]:
    """Return id, state, start and end of runs by a plain call of sacct."""
    command = ["sacct", "--allusers", "--allocations", "--parsable2", "--noheader", "--format=JobID,State,Start,End"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | {"TZ": "UTC"}).stdout
    return [tuple(line.split("|")) for line in told.splitlines()]
