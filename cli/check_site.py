"""`iosig check-site`: check what a site's logs cover, and advise what to configure or land next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import GlobalOptions, json_option, release_option, select_release, strict_option

if TYPE_CHECKING:
    from iosig.answers.site_check.query import SiteCheck
    from iosig.answers.status.problems import Problem

#: maximum length of an application's id, so that the table fits a terminal of 80 columns
_MAX_ID_CHARS = 40
#: headings of applications by the state of their signatures
_STATES = {
    "reliable": "reliable signature",
    "unreliable": "unreliable signature",
    "no_common_bursts": "runs have no bursts in common",
    "no_io": "no I/O",
    "too_few_samples": "too few samples",
}


@click.command("check-site")
@click.option(
    "--top", "max_count", default=5, show_default=True, type=click.IntRange(min=1), help="Applications to list."
)
@release_option
@json_option
@strict_option
@click.pass_obj
def check_site_command(warehouse: GlobalOptions, max_count: int, release_id: str | None, as_json: bool) -> int:
    """Check in a site's first weeks whether its logs suffice.

    Shows for each file system and cluster what polls, counters and job logs cover, whether their clocks agree, the
    share of bytes that is attributed to runs, and when applications will have enough samples. The advice at the end
    names the setting or the file that helps most.
    """
    from iosig.answers.site_check.advice import advise
    from iosig.answers.site_check.document import build_document
    from iosig.answers.site_check.query import TABLES, SiteQuery, check_site
    from iosig.answers.time_shifts import check_release
    from iosig.cli.printing import show_json
    from iosig.warehouse.releases.reading import open_release

    settings, release = warehouse.settings(), select_release(warehouse.store, release_id)
    query = SiteQuery(settings.signatures.min_sample_count, settings.signatures.min_expected_correlation)
    with open_release(warehouse.store, release, TABLES) as connection:
        check = check_site(connection, query)
    advice = advise(check, check_release(warehouse.store, settings, release))
    if as_json:
        show_json(build_document(check, advice, max_count, release.release_id))
    else:
        _show(check, advice, max_count)
    return 0


def _show(check: SiteCheck, advice: Sequence[Problem], max_count: int) -> None:
    from iosig.answers.documents import instant_text
    from iosig.cli.printing import bytes_text, format_title, say, show
    from iosig.reports.texts import format_count, shorten_id

    filesystems = [
        (
            row["filesystem"],
            _join_sources(row),
            row["first_day"],
            row["day_count"],
            row["interval_s"],
            _percent(row["missing_ratio"]),
            row["run_count"],
            bytes_text(row["measured_bytes"]),
            _percent(row["attributed_ratio"]),
        )
        for row in check.filesystems.iter_rows(named=True)
        if row["has_polls"] or row["has_counters"]
    ]
    columns = ("file system", "source", "since", "days", "step_s", "missing", "runs", "bytes", "attributed")
    if filesystems:
        show("File systems", columns, filesystems, last=["step_s", "bytes"])
    clusters = [
        (
            row["cluster"],
            row["run_count"],
            instant_text(row["first_started_at"]),
            row["last_ended_at"] and instant_text(row["last_ended_at"]),
            _percent(row["measured_ratio"]),
        )
        for row in check.clusters.iter_rows(named=True)
    ]
    if clusters:
        show("Clusters", ("cluster", "runs", "first start", "last end", "measured"), clusters)
    if check.applications.height:
        counts = [(_STATES[state], count) for state, count in check.applications.iter_rows()]
        show("Applications", ("signature", "applications"), counts)
    waiting = [
        (
            shorten_id(row["application_id"], _MAX_ID_CHARS),
            row["run_count"],
            row["sample_count"],
            row["missing_count"],
            row["expected_on"] or "cannot tell",
        )
        for row in check.waiting.head(max_count).iter_rows(named=True)
    ]
    if waiting:
        title = format_title("Applications with too few samples", len(waiting), check.waiting.height)
        show(title, ("application", "runs", "samples", "missing", "expected on"), waiting, last=["runs"])
    if not advice:
        say("Nothing to do: all logs cover each other.")
        return
    say(f"{format_count(len(advice), 'thing')} to do, most urgent first:")
    for place, problem in enumerate(advice, start=1):
        say(f"{place}. {problem.sentence}")


def _join_sources(row: dict[str, Any]) -> str:
    names = [
        name for name, has_source in (("polls", row["has_polls"]), ("counters", row["has_counters"])) if has_source
    ]
    return " and ".join(names)


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.0%}"
