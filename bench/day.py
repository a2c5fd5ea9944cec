"""Generate polls and a job log of a synthetic site: by default a day of 96 controllers every 2 s, and 1,000 jobs."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

CONTROLLER_COUNT = 96
POLL_COUNT = 43_200
JOB_COUNT = 1_000
_START = datetime(2026, 3, 3, tzinfo=UTC)

_POLLS = """
    copy (
        select
            strftime(make_timestamp($start_us + 2000000 * (tick + 1)), '%Y-%m-%dT%H:%M:%SZ') as polled_at,
            'widow-' || lpad(controller::varchar, 2, '0') as controller,
            (hash(tick, controller) % 500000000) / 2 as read_bytes_per_s,
            (hash(controller, tick) % 500000000) / 2 as write_bytes_per_s
        from range($poll_count) as ticks (tick), range($controller_count) as controllers (controller)
        order by tick, controller
    ) to $path (header true)
"""


def write_polls(path: Path, controller_count: int = CONTROLLER_COUNT, poll_count: int = POLL_COUNT) -> Path:
    """Write polls as CSV in chronological order, by default 4,147,200 rows."""
    parameters = {
        "start_us": int(_START.timestamp() * 1e6),
        "poll_count": poll_count,
        "controller_count": controller_count,
        "path": str(path),
    }
    with duckdb.connect() as connection:
        connection.execute(_POLLS, parameters)
    return path


def write_jobs(path: Path, job_count: int = JOB_COUNT) -> Path:
    """Write a job log as `sacct --parsable2` prints it: up to 200 applications, runs of 10 min to 6 h."""
    chance = random.Random(1)
    lines = ["JobID|User|Account|JobName|Partition|NNodes|NTasks|Submit|Start|End|State|ExitCode"]
    for number in range(job_count):
        started = _START + timedelta(seconds=chance.randrange(0, 64_000))
        ended = min(started + timedelta(seconds=chance.randrange(600, 21_600)), _START + timedelta(seconds=86_390))
        application = number % 200
        nodes = 2 ** (application % 8)
        times = (started - timedelta(minutes=5), started, ended)
        cells = [
            str(500_000 + number),
            f"user{application % 40}",
            f"acct{application % 10}",
            f"app{application}",
            "batch",
            str(nodes),
            str(nodes * 16),
            *(f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in times),
            "COMPLETED",
            "0:0",
        ]
        lines.append("|".join(cells))
    path.write_text("\n".join(lines) + "\n")
    return path
