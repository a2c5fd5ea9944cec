"""Running jobs from the scheduler's queue complement the job log."""

from __future__ import annotations

from iosig.answers.advice.landed import select_unlogged_jobs
from tests.sql.given import rows

QUEUE = """
cluster job_id queue_state started_at
titan   1      RUNNING     10:00:00
titan   2      RUNNING     10:00:00
titan   3      PENDING     .
titan   4      RUNNING     .
summit  1      COMPLETING  09:00:00
"""


def test_queued_jobs_include_only_running_jobs_missing_from_the_log() -> None:
    logged = [{"cluster": "titan", "job_id": "1.0"}, {"cluster": "summit", "job_id": "7"}]
    found = select_unlogged_jobs(rows("stage.queued_jobs", QUEUE), logged)
    assert [(job["cluster"], job["job_id"], job["ended_at"]) for job in found] == [
        ("titan", "2", None),
        ("summit", "1", None),
    ]
