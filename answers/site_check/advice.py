"""Advise what to configure or land next, from what a site's logs cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from iosig.answers.site_check.query import SiteCheck
from iosig.answers.status.problems import Problem
from iosig.reports.texts import format_count
from iosig.warehouse.printable import one_line

#: maximum share of missing polls, of jobs without a column, and of bytes of unknown keys, that needs no action
_MAX_RATIO = 0.05
#: minimum share of bytes that are attributed before more samples stop being the first thing to wait for
_MIN_ATTRIBUTED_RATIO = 0.5
#: maximum number of file systems in a sentence
_MAX_NAMED = 5
#: what the columns of a job log are needed for
_COLUMNS = {
    "no_user_ratio": ("user", "have no application, and so no signature"),
    "no_application_ratio": ("job name", "have no application, and so no signature"),
    "no_node_count_ratio": ("number of nodes", "have no application, and so no signature"),
}


def advise(check: SiteCheck, clock_warnings: Sequence[str]) -> list[Problem]:
    """Return what to do next, most urgent first; empty if there is nothing to do.

    clock_warnings: findings of `iosig.answers.time_shifts` on this release.
    """
    is_measured = pl.col("has_polls") | pl.col("has_counters")
    measured = check.filesystems.filter(is_measured)
    return [
        *(Problem(f"clocks {place}", text) for place, text in enumerate(clock_warnings, start=1)),
        *_check_inputs(check, measured),
        *(problem for row in measured.iter_rows(named=True) for problem in _check_filesystem(row)),
        *_check_unmeasured(check.filesystems.filter(~is_measured)),
        *(problem for row in check.clusters.iter_rows(named=True) for problem in _check_cluster(row)),
        *_check_traces(check.traces),
        *_check_samples(check),
    ]


def _check_inputs(check: SiteCheck, measured: pl.DataFrame) -> Iterator[Problem]:
    if check.clusters.is_empty():
        yield Problem("no jobs", "No job log has landed: `iosig land` reads those of Slurm, PBS, LSF and Grid Engine.")
    if measured.is_empty():
        yield Problem(
            "no polls",
            "Neither polls nor counters have landed: see the page on input formats for the tools that write them.",
        )


def _check_filesystem(row: dict[str, Any]) -> Iterator[Problem]:
    name = one_line(row["filesystem"])
    if row["run_count"] == 0:
        yield Problem(
            f"unused {name}",
            f"{name} is measured, but no run is known to use it. Let [jobs] filesystem_pattern or [partitions] name "
            "the file systems of runs, or land the job log of these days.",
        )
    if row["missing_day_count"]:
        yield Problem(
            f"days {name}",
            f"{name} has no data on {format_count(row['missing_day_count'], 'day')} between {row['first_day']} and "
            f"{row['last_day']}. Land the missing files.",
        )
    if (row["missing_ratio"] or 0.0) > _MAX_RATIO:
        yield Problem(
            f"gaps {name}",
            f"{row['missing_ratio']:.0%} of the polls of {name} are missing. Check its collector.",
        )
    if (row["unknown_key_ratio"] or 0.0) > _MAX_RATIO:
        yield Problem(
            f"keys {name}",
            f"{row['unknown_key_ratio']:.0%} of the bytes that servers of {name} counted by job belong to no known "
            "job. Set [counters] job_keys to the server's jobid_name, or land the missing job log.",
        )


def _check_unmeasured(filesystems: pl.DataFrame) -> Iterator[Problem]:
    if filesystems.is_empty():
        return
    rows = filesystems.sort("run_count", "filesystem", descending=[True, False]).select("filesystem", "run_count")
    names = [f"{one_line(name)} ({format_count(count, 'run')})" for name, count in rows.head(_MAX_NAMED).iter_rows()]
    if rows.height > _MAX_NAMED:
        names.append(f"{rows.height - _MAX_NAMED:,} more")
    yield Problem(
        "unmeasured file systems",
        f"Job logs or traces name file systems without polls and counters: {', '.join(names)}. Land theirs, or map "
        "their names to those of the polls in [filesystems].",
    )


def _check_cluster(row: dict[str, Any]) -> Iterator[Problem]:
    name = one_line(row["cluster"])
    for column, (label, consequence) in _COLUMNS.items():
        if row[column] > _MAX_RATIO:
            yield Problem(
                f"{column} {name}",
                f"{row[column]:.0%} of the runs on {name} have no {label}: they {consequence}. Export the job log "
                "with this field.",
            )
    if row["measured_ratio"] < 1 - _MAX_RATIO:
        yield Problem(
            f"unmeasured {name}",
            f"{1 - row['measured_ratio']:.0%} of the runs on {name} have neither polls nor counters nor a trace. Land "
            "those of the same days, or check the names of file systems.",
        )


def _check_traces(traces: pl.DataFrame) -> Iterator[Problem]:
    lone = int(traces.filter(pl.col("job_match").is_in(["none", "ambiguous"]))["trace_count"].sum())
    if lone:
        yield Problem(
            "traces",
            f"{format_count(lone, 'traced run')} matched no job or several. Land the job log of these days, and check "
            "[traces] clock_tolerance_s.",
        )


def _check_samples(check: SiteCheck) -> Iterator[Problem]:
    """Say when more applications will have enough samples, if most bytes have no owner yet."""
    attributed_bytes = pl.col("measured_bytes") * pl.col("attributed_ratio").fill_null(0.0)
    totals = check.filesystems.select(measured=pl.col("measured_bytes").sum(), attributed=attributed_bytes.sum())
    ((measured, attributed),) = totals.iter_rows()
    if not measured or attributed >= _MIN_ATTRIBUTED_RATIO * measured or check.waiting.is_empty():
        return
    # the soonest is first
    expected_on = check.waiting["expected_on"][0]
    when = "" if expected_on is None else f"; the next one is expected on {expected_on}"
    yield Problem(
        "samples",
        f"{attributed / measured:.0%} of the bytes are attributed. "
        f"{format_count(check.waiting.height, 'application')} still {'has' if check.waiting.height == 1 else 'have'} "
        f"fewer than {check.query.min_sample_count} samples{when}. Land older job logs and polls to have more at once.",
    )
