"""A small site for advice at noon: two file systems with polls, their jobs, and signatures of three jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from iosig.warehouse.store.store import Store
from tests.flows.signature_releases import Made, publish as publish_signatures
from tests.nights import land_files
from tests.sql.given import NOON
from tests.warehouse.releasing import publish

#: I/O of `late`: one burst of two minutes, one minute after its start, and one four minutes later
LATE = Made(application_id="ana/late/16", bursts=((60, 180, 3e9), (300, 420, 3e9)), seconds=600)
MADE = (
    LATE,
    replace(LATE, direction="read", bursts=((0, 10, 1e9),), told={"sample_count": 5}),
    replace(LATE, direction="write", filesystem="projects", bursts=((60, 180, 1e9),)),
    # it writes from 0 to 30 s and from 360 to 480 s
    Made(application_id="eve/ckpt/8", bursts=((0, 30, 2e9), (360, 480, 4e9)), seconds=600),
    Made(application_id="bob/many/*", bursts=((0, 100, 1e9),), seconds=300),
    Made(application_id="rare/app/4", outcome="too_few_samples", run_count=2),
    Made(application_id="calm/app/4", outcome="no_io"),
    Made(application_id="ana/late/32", bursts=((60, 180, 6e9),), seconds=600),
    Made(application_id="old/app/2", told={"last_run_ended_at": NOON - timedelta(days=100)}),
)
APPLICATIONS = """
    application_id sample_count
    ana/late/16    6
    zoe/new/4      0
"""
TICKS = """
    filesystem polled_at interval_s read_bytes  written_bytes
    scratch    09:00:30  30         60000000000 90000000000
    scratch    09:01:00  30         60000000000 90000000000
    scratch    09:01:30  30         60000000000 150000000000
    projects   09:00:30  30         3000000000  0
"""
#: columns: application, file system, start and end (minutes from noon)
JOBS = (
    ("500", "eve", "ckpt", 8, "scratch", -5, None),
    ("501", "eve", "other", 8, "scratch", -5, None),
    ("502", "bob", "many", 4, "projects", -30, None),
    ("503", "eve", "ckpt", 8, "scratch", -15, -5),
    ("504", "bob", "many", 2, "nowhere", -1, None),
    ("505", "eve", "ckpt", 8, "projects", -60, -50),
    ("506", "eve", "ckpt", 8, "projects", 1, None),
)
POLL_S = 10


def at(minutes: float) -> datetime:
    """Return the instant that is `minutes` after noon."""
    return NOON + timedelta(minutes=minutes)


def land_site(store: Store, folder: Path) -> None:
    """Land the polls of half an hour before noon, and the job log."""
    folder.mkdir(parents=True, exist_ok=True)
    _polls().write_csv(folder / "polls.csv")
    lines = ["JobID|User|JobName|Partition|NNodes|Start|End|State|Comment"]
    for name, user, application, nodes, filesystem, started, ended in JOBS:
        end, state = ("Unknown", "RUNNING") if ended is None else (f"{at(ended):%FT%TZ}", "COMPLETED")
        lines.append(f"{name}|{user}|{application}|batch|{nodes}|{at(started):%FT%TZ}|{end}|{state}|fs={filesystem}")
    (folder / "jobs.sacct").write_text("\n".join(lines) + "\n")
    assert [arrival.has_refusals for arrival in land_files(store, folder)] == [False, False]


def _polls() -> pl.DataFrame:
    """Return polls of two controllers per file system: 1 and 0.25 GB/s, plus the bursts of ckpt."""
    rows: list[tuple[Any, ...]] = []
    for second in range(-1800 + POLL_S, POLL_S, POLL_S):
        # 500 began at -300 s, 503 at -900 s; both write 2 GB/s for 30 s, and 503 4 GB/s from -540 to -420 s
        mine = 2e9 * (-300 < second <= -270) + 2e9 * (-900 < second <= -870) + 4e9 * (-540 < second <= -420)
        for filesystem, rate in (("scratch", 1e9 + mine), ("projects", 2.5e8)):
            for controller in ("c0", "c1"):
                polled_at = f"{NOON + timedelta(seconds=second):%FT%TZ}"
                rows.append((polled_at, controller, filesystem, rate / 4, rate / 4))
    columns = ["polled_at", "controller", "filesystem", "read_bytes_per_s", "write_bytes_per_s"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def publish_site(store: Store) -> None:
    """Publish the signatures, and earlier traffic of the file systems."""
    publish_signatures(
        store, "signatures", [replace(made, told={"last_run_ended_at": NOON} | made.told) for made in MADE]
    )
    publish(store, "filesystem_rates", {"filesystem_rates": {9: TICKS}, "applications": {None: APPLICATIONS}})
