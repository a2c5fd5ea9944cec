"""On a real day through a whole release, `who` names the benchmark that had a file system to itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from iosig.answers.attribution.query import TABLES, Query, who
from iosig.settings.model import Settings
from iosig.studies.real_day import Day
from iosig.studies.unattributed.real import add_decoys, select_busy_minutes
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.nights import land_files, run_night

SETTINGS = Settings.model_validate({"filesystems": {"scratch1": "snx11025"}})


def log_of(day: Day, seed: int, path: Path) -> None:
    """Write the job log of a day with its decoys, numbered as by `add_decoys`."""
    runs, start_s = add_decoys(day, seed)
    end_s = start_s + (day.end_s - day.start_s)[runs]

    def when(seconds: float) -> str:
        return f"{datetime.fromtimestamp(day.day_start_s + seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"

    rows = [
        f"{number}|tokio|abc|{day.name[run]}|regular|128|{when(started)}|{when(ended)}|COMPLETED|0:0|fs=scratch1"
        for number, (run, started, ended) in enumerate(zip(runs, start_s, end_s, strict=True))
    ]
    head = "JobID|User|Account|JobName|Partition|NNodes|Start|End|State|ExitCode|Comment"
    path.write_text("\n".join([head, *rows]) + "\n")


@pytest.mark.long
def test_true_run_ranks_before_200_decoys(shared_data: Path, tmp_path: Path) -> None:
    polls = shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt"
    day = Day.read(polls, shared_data / "jobs" / "edison-2018-02-09.sacct")
    log = tmp_path / "decoys.sacct"
    log_of(day, 400, log)
    store = Store(tmp_path / "warehouse")
    arrivals = land_files(store, polls, log, settings=SETTINGS)
    assert not any(arrival.has_refusals for arrival in arrivals)
    release = run_night(store, SETTINGS)
    minutes, true = select_busy_minutes(day)
    ranks = []
    for minute, run in zip(minutes.tolist(), true.tolist(), strict=True):
        at = datetime.fromtimestamp(day.day_start_s + 60 * minute, UTC)
        with open_release(store, release, TABLES) as connection:
            told = who(connection, Query("snx11025", at, at + timedelta(minutes=1)))
        moved = pl.concat(
            [
                told.jobs.select("job_id", moved_bytes="attributed_bytes"),
                told.others.select("job_id", moved_bytes=pl.col("likely_bytes").fill_null(0)),
            ]
        )
        own = moved.filter(job_id=str(run))["moved_bytes"].sum()
        ranks.append(moved.filter(pl.col("moved_bytes") > own).height if own else moved.height)
    assert len(ranks) >= 10
    assert sum(rank == 0 for rank in ranks) >= 0.9 * len(ranks), ranks
    assert sum(rank < 3 for rank in ranks) >= 0.95 * len(ranks), ranks
