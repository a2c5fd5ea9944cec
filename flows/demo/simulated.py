"""Write the logs of simulated machines in the formats of real ones, and find real traces that ship with `darshan`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from iosig.transforms import classes
from iosig.transforms.arrays import Reals, offsets_of
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.synthetic.job_statistics import JobStatistics, JobStatisticsParams, count_jobs
from iosig.transforms.synthetic.job_statistics_texts import Form, format_lctl
from iosig.transforms.synthetic.site import Site, SiteParams, signature, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, DIRECTIONS, Application, Direction
from iosig.warehouse.contracts.application_ids import make_application_id

FILESYSTEM = "widow1"
#: file system of a second machine, with other applications; its servers count bytes per job
EXACT_FILESYSTEM = "widow2"
_SETTINGS = f"""\
# Settings of the simulated site.
[schedule]
inbox = {{inbox}}

[time_zones]
sacct = "UTC"

# mount point of Darshan logs -> file system
[filesystems]
"/scratch" = "{FILESYSTEM}"

# partition of jobs -> file systems
[partitions]
batch = ["{FILESYSTEM}"]
analysis = ["{EXACT_FILESYSTEM}"]
"""
_EXACT_USERS = {"ior_b": ("hacc", "gil"), "milc": ("nyx", "hal")}
#: fields that a site's nightly script requests from sacct, for all jobs of the day in any state
SACCT_FIELDS = (
    "JobID", "JobName", "User", "Account", "Partition", "Cluster", "NNodes", "NTasks", "Submit", "Start", "End",
    "State", "ExitCode",
)  # fmt: skip
#: default start of a site
_START = SiteParams().start
#: fraction of a torn file that remains: its beginning is intact, its footer is missing
_TORN_RATIO = 0.6


def settings_text(inbox: Path) -> str:
    """Return the content of the simulated site's settings file, with the folder in which its files arrive."""
    # JSON escapes strings like TOML
    return _SETTINGS.format(inbox=json.dumps(str(inbox)))


def write_site(
    site: Site,
    into: Path,
    *,
    days: Collection[date] | None = None,
    with_faults: bool = False,
    filesystem: str = FILESYSTEM,
) -> tuple[Path, ...]:
    """Write a site's logs of some or all days: a job log each night, and a file of polls for each day.

    `jobs/sacct_<day>.txt` is sacct's `--parsable2` with a header, in UTC; a job that is still running at
    midnight is in the logs of both days. `polls/polls_<day>.parquet` has the polls that arrived on that
    day, in the order of arrival. `with_faults` adds typical damage: the last job log has a truncated line,
    and a second, truncated file repeats the last day's polls.

    Returns the paths of the job logs, then those of the polls, both by day.
    """
    jobs, polls = into / "jobs", into / "polls"
    jobs.mkdir(parents=True, exist_ok=True)
    polls.mkdir(parents=True, exist_ok=True)
    logs = [_write_log(site, day, jobs) for day in list_days(site) if days is None or day in days]
    files = [
        _write_polls(day, rows, polls)
        for day, rows in _split_polls_by_arrival(site, filesystem)
        if days is None or day in days
    ]
    if with_faults:
        with logs[-1].open("a", encoding="utf-8") as log:
            log.write("4999999|xgc|u1234|prj0\n")
        content = files[-1].read_bytes()
        torn = polls / f"{files[-1].stem}.part.parquet"
        torn.write_bytes(content[: int(len(content) * _TORN_RATIO)])
        files.append(torn)
    return (*logs, *files)


# ---- job logs


def list_days(site: Site) -> list[date]:
    """Return the days on which a site was polled."""
    first, last = site.traffic["polled_at"].item(0), site.traffic["polled_at"].item(-1)
    return [first.date() + timedelta(days=number) for number in range((last.date() - first.date()).days + 1)]


def _write_log(site: Site, day: date, folder: Path) -> Path:
    midnight = datetime.combine(day, time(), UTC)
    lines = sacct_lines(site.jobs, midnight, midnight + timedelta(days=1))
    path = folder / f"sacct_{day}.txt"
    path.write_text("\n".join(["|".join(SACCT_FIELDS), *lines, ""]), encoding="utf-8")
    return path


def sacct_lines(jobs: pl.DataFrame, since: datetime, until: datetime) -> list[str]:
    """Return the lines that sacct prints at `until` about the jobs and batch steps that existed since `since`.

    The log does not know the future: a job that ends later is RUNNING, one that starts later is PENDING.
    """
    existing = jobs.filter(pl.col("submitted_at") < until, pl.col("ended_at").is_null() | (pl.col("ended_at") >= since))
    is_pending = pl.col("started_at") >= until
    is_open = pl.col("ended_at").is_null() | (pl.col("ended_at") >= until)
    state = (
        pl.when(pl.col("cancelled_by").is_null()).then("state").otherwise(pl.format("CANCELLED by {}", "cancelled_by"))
    )
    now = existing.with_columns(
        started_at=pl.when(~is_pending).then("started_at"),
        ended_at=pl.when(~is_open).then("ended_at"),
        said=pl.when(is_pending).then(pl.lit("PENDING")).when(is_open).then(pl.lit("RUNNING")).otherwise(state),
        exit_code=pl.when(is_open).then(pl.lit("0:0")).otherwise("exit_code"),
    )
    steps = now.filter(pl.col("started_at").is_not_null()).with_columns(
        job_id=pl.col("job_id") + ".batch",
        job_name=pl.lit("batch"),
        user=pl.lit(""),
        partition=pl.lit(""),
        node_count=pl.lit(1, pl.Int64),
        task_count=pl.lit(1, pl.Int64),
        # a step is submitted when it starts, and only the job's row names who cancelled it
        submitted_at=pl.col("started_at"),
        said=pl.col("said").str.replace(r" by .*", ""),
    )
    cells = [
        pl.col("job_id", "job_name", "user", "account", "partition", "cluster"),
        pl.col("node_count", "task_count").cast(pl.String),
        pl.col("submitted_at", "started_at", "ended_at").dt.to_string("%Y-%m-%dT%H:%M:%S").fill_null("Unknown"),
        pl.col("said", "exit_code"),
    ]
    rows = pl.concat([now, steps]).sort("job_id")
    return rows.select(pl.concat_str(cells, separator="|")).to_series().to_list()


# ---- polls


def _split_polls_by_arrival(site: Site, filesystem: str) -> Iterator[tuple[date, pl.DataFrame]]:
    """Yield the polls by day of arrival; arrival times never decrease."""
    polls = site.polls.with_columns(arrived_on=pl.col("polled_at").cum_max().dt.date())
    for (day,), rows in polls.group_by("arrived_on", maintain_order=True):
        yield (
            day,
            rows.select(
                "polled_at",
                "controller",
                pl.lit(filesystem).alias("filesystem"),
                "read_bytes_per_s",
                "write_bytes_per_s",
            ),
        )


def _write_polls(day: date, rows: pl.DataFrame, folder: Path) -> Path:
    path = folder / f"polls_{day}.parquet"
    rows.write_parquet(path, compression="zstd")
    return path


# ---- job statistics


def exact_site(seed: int, start: datetime = _START) -> tuple[Site, JobStatistics]:
    """Simulate a small machine with per-job counters for eight hours, and the readings of a collector."""
    applications = [
        replace(application, name=name, user=user, run_count=5)
        for application in APPLICATIONS
        if application.name in _EXACT_USERS
        for name, user in [_EXACT_USERS[application.name]]
    ]
    params = SiteParams(
        seed=seed, days=0.3, controller_count=4, foreign_level=0.3, fault_level=0, cluster="eos", partition="analysis",
        top_interferer_job_id=7_000_000, start=start,
    )  # fmt: skip
    site = simulate(params, applications)
    counted = JobStatisticsParams(
        seed=seed, filesystem=EXACT_FILESYSTEM, ost_count=2, interval_s=10.0, lost_ratio=0.01, restarts_per_day=2.0
    )
    return site, count_jobs(site, counted)


def write_statistics(statistics: JobStatistics, into: Path, form: Form = "new") -> tuple[Path, ...]:
    """Write a collector's readings of each server as `job_stats/<server>_<day>.txt`. Returns the paths."""
    folder = into / "job_stats"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for document in format_lctl(statistics, form):
        path = folder / f"{document.server}_{document.day}.txt"
        path.write_text(document.text, encoding="utf-8")
        paths.append(path)
    return tuple(paths)


# ---- traces


def find_shipped_logs() -> tuple[Path, ...]:
    """Return the real Darshan logs that ship inside the `darshan` wheel, without importing it."""
    spec = find_spec("darshan")
    assert spec is not None
    assert spec.origin is not None
    return tuple(sorted((Path(spec.origin).parent / "examples").rglob("*.darshan")))


# ---- truth


def classes_truth(site: Site) -> pl.DataFrame:
    """Return each application's class when it runs alone, as a reference for results from shared traffic.

    Columns: application, user, node_count, direction, and those of `iosig.transforms.classes.classify`; one row
    per application and direction.
    """
    last_s = site.params.span_s
    subjects = [(application.at(last_s), direction) for application in site.applications for direction in DIRECTIONS]
    signatures = [signature(application, direction) for application, direction in subjects]
    lengths = np.array([len(rates) for rates in signatures])
    node_count = np.array([float(application.node_count) for application, _ in subjects])
    start = np.zeros(len(subjects))
    sections = classes.grid_sections(
        np.concatenate([np.empty(0), *signatures]),
        offsets_of(lengths),
        grid_started_s=start,
        interval_s=start + 1.0,
        start_s=start,
        end_s=lengths.astype(np.float64),
    )
    names = pl.DataFrame(
        [
            (application.name, application.user, application.node_count, direction)
            for application, direction in subjects
        ],
        schema={"application": pl.String, "user": pl.String, "node_count": pl.Int64, "direction": pl.String},
        orient="row",
    )
    return pl.concat([names, classes.classify(sections, node_count)], how="horizontal")


@dataclass(frozen=True, slots=True)
class TrueSignature:
    """The signature of an application that runs alone, in one direction: its rate in each second, and its bursts.

    slowdown_ratio: median ratio of the time from first to last burst in complete runs to that of a run alone.
    """

    cluster: str
    application: Application
    direction: Direction
    bytes_per_s: Reals
    bursts: Bursts
    slowdown_ratio: float

    @property
    def application_id(self) -> str | None:
        """The application's id in the warehouse."""
        user, name = self.application.user, self.application.name
        return make_application_id(self.cluster, user, name, self.application.node_count)


def signatures_truth(site: Site) -> list[TrueSignature]:
    """Return the true signature of each application's last version in each direction, to judge estimates."""
    return [
        _true_signature(site, application, direction) for application in site.applications for direction in DIRECTIONS
    ]


def _slowdown_ratio(site: Site, application: Application, direction: Direction) -> float:
    """Return the median time from first to last burst of the last version's complete runs, relative to a run alone.

    A run without two bursts is measured from its start to its end.
    """
    last = application.at(site.params.span_s)
    since = site.params.start + timedelta(seconds=application.revision.from_s if application.revision else 0.0)
    runs = site.runs.filter(application=application.name, kind="complete")
    jobs = site.jobs.filter(pl.col("started_at") >= since, pl.col("ended_at").is_not_null())
    jobs = jobs.join(runs, on="job_id", how="semi")
    starts = [burst.offset_s for burst in last.bursts if burst.direction == direction]
    spans, alone_s = (pl.col("ended_at") - pl.col("started_at")), last.duration_s
    if len(starts) > 1:
        jobs = site.bursts.filter(direction=direction).join(jobs.select("job_id"), on="job_id", how="semi")
        jobs = jobs.group_by("job_id").agg(span=pl.col("started_at").max() - pl.col("started_at").min())
        spans, alone_s = pl.col("span"), starts[-1] - starts[0]
    median_s = jobs.select(spans.dt.total_microseconds() / 1e6).to_series().median()
    return max(0.0, median_s / alone_s - 1.0) if isinstance(median_s, float) else 0.0


def _true_signature(site: Site, named: Application, direction: Direction) -> TrueSignature:
    application = named.at(site.params.span_s)
    rates = signature(application, direction)
    bursts = [burst for burst in application.bursts if burst.direction == direction]
    started = np.array([burst.offset_s for burst in bursts], dtype=np.float64)
    ended = np.array([burst.end_s for burst in bursts], dtype=np.float64)
    seconds = zip(np.floor(started).astype(np.int64), np.ceil(ended).astype(np.int64), strict=True)
    true_bursts = Bursts(
        start_s=started,
        peak_s=np.array([first + np.argmax(rates[first:last]) for first, last in seconds], dtype=np.float64),
        end_s=ended,
        volume_bytes=np.array([burst.volume_bytes for burst in bursts], dtype=np.float64),
        # every run has all bursts of the application
        support_ratio=np.ones(len(bursts)),
    )
    slowdown_ratio = _slowdown_ratio(site, named, direction)
    return TrueSignature(site.params.cluster, application, direction, rates, true_bursts, slowdown_ratio)
