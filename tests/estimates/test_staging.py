"""Landed rows are staged outside a night by the same models, with the settings they need."""

from __future__ import annotations

from pathlib import Path

from iosig.estimates.staging import engine, model_parameters, stage_jobs, stage_polls
from iosig.settings.model import Settings
from tests.sql.given import at, rows

RECORDS = """
    job_id  user  job_name  started_at  ended_at  comment
    1       ann   run.sh    10:00:00    10:05:00  fs=snx
    2       bob   run.sh    10:02:00    .         .
"""
POLLS = """
    filesystem  controller  polled_at  interval_s  read_bytes_per_s  write_bytes_per_s
    lake        c0          10:00:30   30          10                20
    lake        c1          10:00:30   30          10                .
    lake        c0          10:01:00   30          10                20
    lake        c0          10:01:00   30          10                20
    lake        c1          10:01:30   30          .                 .
"""


def test_jobs_are_staged_with_configured_file_system_names(tmp_path: Path) -> None:
    settings = Settings.model_validate({"filesystems": {"snx": "lake"}})
    for spill in (None, tmp_path):
        with engine(settings, spill) as connection:
            jobs = stage_jobs(connection, settings, rows("landed.job_records", RECORDS))
        found = jobs.sort("job_id").select("job_id", "application", "filesystem", "ended_at").rows()
        assert found == [("1", "run.sh", "lake", at("10:05:00")), ("2", "run.sh", None, None)]


def test_repeated_polls_count_once_and_gaps_are_dropped() -> None:
    with engine(Settings()) as connection:
        ticks = stage_polls(connection, Settings(), rows("landed.polls", POLLS))
        interval = connection.sql("select interval_s, grid_phase_s from stage.polls_daily").fetchall()
    assert ticks.select("polled_at", "read_bytes", "written_bytes").rows() == [
        (at("10:00:30"), 600, 600),
        (at("10:01:00"), 300, 600),
    ]
    assert interval == [(30.0, 0.0)]


def test_pseudonymized_application_names_are_not_parsed() -> None:
    hidden = Settings.model_validate({"privacy": {"is_pseudonymized": True}, "jobs": {"application_pattern": "^(..)"}})
    assert model_parameters(hidden)["application_pattern"] == "^(.*)$"
    assert model_parameters(Settings())["application_pattern"] == Settings().jobs.application_pattern
