"""Build the start page: verdict, the day in five numbers, changes, busiest hours, and missing data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from iosig.reports.texts import format_count, ratio_text, volume_text

_MAX_CHANGES, _MAX_GAPS, _MAX_FAILED_CHECKS = 20, 8, 10
#: minimum fraction of received polls, below which the page shows a warning
_MIN_POLL_RATIO = 0.95
#: minimum factor by which a value must differ from its usual level to be mentioned
_UNUSUAL = 1.5


@dataclass(frozen=True, slots=True)
class NightFrames:
    """Input of the start page, the last day first.

    days: polled_on, measured_bytes, attributed_bytes, poll_ratio. gaps: file systems and days with missing polls.
    counts: one row of counts. changed: signatures that changed. busiest: hours of the last day. unpolled: file systems
    without polls, with their runs. failed: checks that failed, and the reason. slowed: runs of the last day with slowed
    bursts, those that lost most. slowed_counts: one row with the number of runs analyzed (looked_count) and slowed
    (slowed_count).
    """

    days: pl.DataFrame
    gaps: pl.DataFrame
    counts: pl.DataFrame
    changed: pl.DataFrame
    busiest: pl.DataFrame
    unpolled: pl.DataFrame
    failed: pl.DataFrame
    slowed: pl.DataFrame
    slowed_counts: pl.DataFrame


def make_variables(frames: NightFrames, verdict: str, figures: Mapping[str, str]) -> dict[str, Any]:
    """Return the start page's template variables; figures: its figures by name, as SVG."""
    missing = list(_missing(frames))
    changed = frames.changed.height
    is_well = verdict == "passed" and not missing
    return {
        "night": {
            "mood": "well" if is_well else "warned",
            "verdict": _verdict(frames, verdict),
            "sentence": _sentence(frames, len(missing)),
            "numbers": list(_numbers(frames)),
            "changed": frames.changed.head(_MAX_CHANGES).to_dicts(),
            "changed_count": changed,
            "unchanged": _explain_no_changes(frames),
            "busiest": frames.busiest.to_dicts(),
            "slowed": frames.slowed.to_dicts(),
            "hurt_said": format_slowed_runs(*frames.slowed_counts.row(0)),
            "missing": missing,
            "drawn": figures,
        }
    }


def format_slowed_runs(looked_count: int, slowed_count: int) -> str:
    """Format the numbers of runs analyzed for slowdowns and of slowed runs."""
    if not looked_count:
        return "No bursts of that day's runs were detected in the traffic, so slowdowns are unknown."
    were, runs = "was" if slowed_count == 1 else "were", format_count(looked_count, "run")
    return f"{slowed_count:,} {were} slowed, of {runs} with detected bursts."


def _verdict(frames: NightFrames, verdict: str) -> str:
    day = frames.counts["day"][0]
    checks = "all checks passed" if verdict == "passed" else "some checks failed"
    return f"{day or 'No day'}: {checks}."


def _sentence(frames: NightFrames, missing_count: int) -> str:
    changed = frames.changed.height
    changes = f"{format_count(changed, 'signature')} changed" if changed else "No signature changed"
    problems = f"{format_count(missing_count, 'problem')} listed below" if missing_count else "no data are missing"
    return f"{changes}; {problems}."


def _explain_no_changes(frames: NightFrames) -> str:
    if frames.counts["compared_count"][0]:
        return "No signature changed since the previous release."
    return "No previous release has these signatures: changes are reported from the next nightly run on."


def _numbers(frames: NightFrames) -> Iterator[dict[str, str]]:
    counts = frames.counts.row(0, named=True)
    day = frames.days.row(0, named=True) if frames.days.height else None
    measured = day["measured_bytes"] if day else None
    explained = day["attributed_bytes"] if day else None
    yield _number("moved", None if measured is None else volume_text(measured), _usual(frames))
    share = explained / measured if measured and explained is not None else None
    yield _number(
        "attributed",
        None if share is None else ratio_text(min(share, 1.0)),
        "" if explained is None else f"{volume_text(explained)} by known applications",
    )
    yield _number("runs ended", f"{counts['run_count']:,}", f"of {format_count(counts['user_count'], 'user')}")
    yield _number(
        "have a signature",
        f"{counts['signature_count']:,}",
        f"of {format_count(counts['application_count'], 'application')}; {counts['trusted_count']:,} trusted",
    )
    polled = day["poll_ratio"] if day else None
    yield _number("of polls received", None if polled is None else ratio_text(min(polled, 1.0)), "")


def _number(name: str, value: str | None, beside: str) -> dict[str, str]:
    return {"name": name, "value": "not known" if value is None else value, "beside": beside}


def _usual(frames: NightFrames) -> str:
    """Compare the last day's bytes with the median of the preceding days, unless the last day has missing polls."""
    if frames.days.height and (frames.days["poll_ratio"][0] or 0.0) < _MIN_POLL_RATIO:
        return "incomplete polls"
    before = frames.days["measured_bytes"][1:].median()
    if not isinstance(before, float) or not before > 0:
        return "no earlier day to compare with"
    ratio = frames.days["measured_bytes"][0] / before
    is_unusual = ratio > _UNUSUAL or ratio < 1 / _UNUSUAL
    return f"{ratio:.2g} times the median of earlier days" if is_unusual else f"about as usual: {volume_text(before)}"


def _missing(frames: NightFrames) -> Iterator[str]:
    """Yield a sentence on each kind of missing data."""
    if not frames.days.height:
        yield "No polls have landed, so the storage traffic during runs is unknown."
    elif (frames.days["poll_ratio"][0] or 0.0) < _MIN_POLL_RATIO:
        yield f"{ratio_text(1 - (frames.days['poll_ratio'][0] or 0.0))} of the last day's polls are missing."
    for row in frames.gaps.head(_MAX_GAPS).iter_rows(named=True):
        share = ratio_text(row["missing_ratio"])
        yield f"{share} of the polls of {row['filesystem']} are missing on {row['polled_on']}."
    if frames.gaps.height > _MAX_GAPS:
        yield f"Polls are also missing on {format_count(frames.gaps.height - _MAX_GAPS, 'more day')}."
    for row in frames.unpolled.iter_rows(named=True):
        yield f"{format_count(row['run_count'], 'run')} used {row['filesystem']}, but no polls of it have landed."
    if rejected := frames.counts["reject_count"][0]:
        yield f"{format_count(rejected, 'refused input')}: see the reasons on the Quality page."
    for row in frames.failed.head(_MAX_FAILED_CHECKS).iter_rows(named=True):
        yield f"{row['table_name']}: {row['happened']}"
