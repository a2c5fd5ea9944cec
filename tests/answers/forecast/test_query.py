"""Expected forecast of a small site combines running and queued jobs with past background traffic."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from iosig.answers.forecast.query import ForecastResult, Query, build_document, count_jobs, forecast_load
from iosig.answers.forecast.what_if import build_what_if_job
from iosig.cli.printing import progress_bar
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions as Landing, land_paths
from iosig.transforms.traces.frames import to_frame
from iosig.warehouse.errors import InputRefused, NothingToDo, UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.store.store import Store
from tests import compressed
from tests.flows.advised_sites import at, land_site, publish_site
from tests.nights import Cli
from tests.sql.given import NOON

pytestmark = pytest.mark.slow

HEAD = "JOBID|USER|ACCOUNT|PARTITION|STATE|SUBMIT_TIME|START_TIME|END_TIME|TIME_LIMIT|NODES|CPUS|REASON|COMMENT|NAME"
#: columns: application, state, queued since, expected start (minutes from noon), limit, reason, node count, name
QUEUE = (
    ("500", "eve", "RUNNING", -9, -5, "1:00:00", "None", 8, "ckpt"),
    ("600", "ana", "PENDING", -5, 2, "20:00", "Resources", 16, "late"),
    ("601", "ana", "PENDING", -5, None, "20:00", "JobHeldUser", 16, "late"),
    ("602", "bob", "PENDING", -5, 3, "20:00", "Resources", 4, "strange"),
    ("603", "eve", "RUNNING", -30, -2, "UNLIMITED", "None", 8, "ckpt"),
)


def queue_text() -> str:
    lines = [f"{NOON.timestamp():.0f}", HEAD]
    for name, user, state, submitted, started, limit, reason, nodes, application in QUEUE:
        start = "N/A" if started is None else f"{at(started):%FT%TZ}"
        lines.append(
            f"{name}|{user}|(null)|batch|{state}|{at(submitted):%FT%TZ}|{start}|N/A|{limit}|{nodes}|1|{reason}|"
            f"fs=scratch|{application}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Release]:
    """Polls of half an hour before noon, the job log and the queue have landed; a release has signatures."""
    root = tmp_path_factory.mktemp("forecast")
    store = Store(root / "warehouse")
    land_site(store, root / "in")
    (root / "queue.txt").write_text(queue_text())
    landed = land_paths(store, Settings(), [str(root / "queue.txt")], Landing())
    assert [arrival.has_refusals for arrival in landed] == [False]
    publish_site(store)
    return store, releases.find(store, None)


@pytest.fixture(scope="module")
def noon(site: tuple[Store, Release]) -> ForecastResult:
    return forecast_load(*site, Settings(), Query("scratch", hours=0.25, step_minutes=1))


def test_running_and_queued_jobs_are_listed_by_status(noon: ForecastResult) -> None:
    assert noon.at == NOON
    assert {job.name: job.status for job in noon.jobs} == {
        "500": "known",
        "501": "unknown",
        "600": "known",
        "601": "held",
        "602": "unknown",
        "603": "known",
    }
    assert count_jobs(noon) == {"running": 3, "waiting": 3, "known": 3, "unknown": 2, "held": 1}
    assert noon.applications == ("ana/late/16", "eve/ckpt/8")


def test_bursts_are_predicted_at_their_signature_times(noon: ForecastResult) -> None:
    late, ckpt = noon.forecast.applications_bytes_per_s
    # 500 writes 4 GB/s from minute one for two minutes, 603 from minute four on
    assert np.flatnonzero(ckpt > 1e9).tolist() == [1, 2, 4, 5]
    assert ckpt.sum() * 60 == pytest.approx(2 * 4e9 * 120, rel=0.1)
    # it starts in two minutes at the latest, and reads before it writes
    assert late[:3].sum() * 60 > 0
    assert late.sum() * 60 == pytest.approx(2 * 3e9 * 120 + 1e10, rel=0.1)


def test_interval_contains_the_expectation_and_background_is_kept(noon: ForecastResult) -> None:
    found = noon.forecast
    assert (found.low_bytes_per_s <= found.high_bytes_per_s).all()
    # bytes that exceed the capacity are postponed
    known = found.applications_bytes_per_s.sum() + found.unknown_bytes_per_s.sum()
    assert found.expected_bytes_per_s.sum() == pytest.approx(known, rel=0.02)
    assert noon.capacity_bytes_per_s == 5e9
    assert found.high_bytes_per_s.max() == pytest.approx(5e9)
    assert noon.level_bytes_per_s == pytest.approx(1e9, rel=0.2)
    assert 0.5e9 < found.unknown_bytes_per_s.mean() < 6e9


def test_json_and_text_output(site: tuple[Store, Release], noon: ForecastResult, cli: Cli, tmp_path: Path) -> None:
    written = json.loads(build_document(noon, "release").json_text())
    assert len(written["steps"]) == 15
    assert written["steps"][0]["from"] == "2018-02-09T12:00:00Z"
    meeting = written["collisions"][0]
    assert {meeting["first_application"], meeting["second_application"]} <= {"ana/late/16", "eve/ckpt/8"}
    asked = ("--hours", 0.25, "--step", 1, "--plot", tmp_path / "f.png")
    code, out, err = cli("--warehouse", site[0].root, "forecast", "scratch", *asked)
    assert (code, err) == (0, f"Drawn: {tmp_path / 'f.png'}\n")
    assert "3 jobs run and 3 wait; 3 of them have a signature." in out
    assert "Held: 601 (ana/late/16)." in out
    assert max(map(len, out.splitlines())) <= 80
    assert imread(tmp_path / "f.png").shape[1] == 1440


def test_what_if_job_is_added_to_the_forecast(
    site: tuple[Store, Release], noon: ForecastResult, tmp_path: Path
) -> None:
    trace = compressed.file_per_process(1_000_000)
    path = tmp_path / "million.parquet"
    compressed_traces.write(path, to_frame(trace), {"process_count": str(trace.process_count)})
    asked = build_what_if_job([path], 1_000_000, progress_bar)
    assert asked.name == "million.parquet at 1,000,000 ranks"
    assert asked.signature is not None
    assert asked.signature.rates.volume_bytes == pytest.approx(4 * 131072e6, rel=1e-3)
    found = forecast_load(*site, Settings(), Query("scratch", hours=0.25, step_minutes=1, what_if=asked))
    place = found.applications.index(asked.name)
    assert found.forecast.applications_bytes_per_s[place].sum() * 60 == pytest.approx(4 * 131072e6, rel=1e-3)
    assert found.without is not None
    assert found.without.expected_bytes_per_s == pytest.approx(noon.forecast.expected_bytes_per_s)
    added = sum(step["added_bytes_per_s"] for step in build_document(found, "release").steps) * 60
    assert added == pytest.approx(4 * 131072e6, rel=0.2)
    assert count_jobs(found) == count_jobs(noon), "it does not run"


def test_unsuitable_what_if_traces_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    compressed_traces.write(path, to_frame(compressed.file_per_process(10)), {"process_count": "10"})
    with pytest.raises(UsageError, match="has 10 ranks"):
        build_what_if_job([path], 4096, progress_bar)
    with pytest.raises(UsageError, match="Pass --ranks"):
        build_what_if_job([path, path], None, progress_bar)
    compressed_traces.write(path, to_frame(compressed.file_per_process(10, size=0)), {"process_count": "10"})
    with pytest.raises(InputRefused, match="no I/O of known size"):
        build_what_if_job([path], None, progress_bar)


def test_impossible_forecast_is_reported_in_one_sentence(site: tuple[Store, Release]) -> None:
    with pytest.raises(NothingToDo, match="forecast of at most"):
        forecast_load(*site, Settings(), Query("scratch", hours=6))
    with pytest.raises(NothingToDo, match="no polls of scratch before"):
        forecast_load(*site, Settings(), Query("scratch", at=at(-600)))
    with pytest.raises(UsageError, match="projects, scratch"):
        forecast_load(*site, Settings(), Query("sea"))
    with pytest.raises(UsageError, match="use longer steps"):
        forecast_load(*site, Settings(), Query("scratch", hours=48, step_minutes=1))
