"""`iosig patterns`: list recurring patterns in the traffic that no logged job explains."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly
from iosig.cli.options import GlobalOptions, json_option, release_option, select_release, strict_option
from iosig.cli.windows import read_instant

if TYPE_CHECKING:
    from iosig.answers.attribution.patterns import UnattributedPatterns

#: maximum length of an application's name, so that the table fits a terminal of 80 columns
_MAX_NAME_CHARS = 16


@click.command("patterns")
@click.argument("filesystem", shell_complete=quietly(filesystems))
@click.option("--since", metavar="TIME", callback=read_instant, help="Patterns that occurred at this instant or later.")
@click.option("--until", metavar="TIME", callback=read_instant, help="Patterns that occurred before this instant.")
@click.option("--direction", type=click.Choice(["write", "read"]), help="Only this direction; default: both.")
@click.option("--top", "max_count", default=10, show_default=True, type=click.IntRange(min=1), help="Number of rows.")
@release_option
@json_option
@strict_option
@click.pass_obj
def patterns_command(
    warehouse: GlobalOptions,
    filesystem: str,
    since: datetime | None,
    until: datetime | None,
    direction: str | None,
    max_count: int,
    release_id: str | None,
    as_json: bool,
) -> int:
    """List recurring patterns in the unattributed traffic of a file system, largest volume first.

    A pattern with occurrences during runs of a logged application is attributed to it: see docs/attribution.md.
    """
    from iosig.answers.attribution import patterns
    from iosig.cli.printing import show_json

    release = select_release(warehouse.store, release_id)
    result = patterns.find_patterns(warehouse.store, release, filesystem, direction, (since, until))
    if as_json:
        show_json(patterns.build_document(result, max_count, release.release_id))
    else:
        _show(result, max_count)
    return 0


def _show(result: UnattributedPatterns, max_count: int) -> None:
    from iosig.cli.printing import format_title, say, show

    rows = result.patterns.head(max_count).to_dicts()
    if rows:
        title = format_title(f"{result.filesystem}: recurring unattributed patterns", len(rows), result.patterns.height)
        columns = ("pattern", "way", "times", "every", "bytes", "last seen", "owner")
        show(title, columns, [_cells(row) for row in rows])
    for row in rows:
        if row["application_id"]:
            say(
                f"{row['pattern_id'][:8]}: {row['covered_occurrence_count']} of {row['occurrence_count']} occurrences "
                f"in runs of {row['application_id']}, seen in {row['covering_run_count']} of "
                f"{row['application_run_count']} runs; p = {row['p_value']:.1g}."
            )
    reasons = {"no_pattern": "no recurring pattern", "too_short": "too few polls"}
    for direction, outcome in result.without_patterns.items():
        say(f"{direction}: {reasons[outcome]}.")
    if not rows and not result.without_patterns:
        say("No pattern occurred in this time range.")


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    from iosig.reports.texts import duration_text, shorten_id, volume_text

    owner = {"unattributed": "-", "ambiguous": "ambiguous"}.get(row["outcome"], row["application_id"] or "")
    return (
        row["pattern_id"][:8],
        row["direction"],
        row["occurrence_count"],
        duration_text(row["period_s"]) if row["period_s"] else None,
        volume_text(row["occurrence_bytes"]),
        f"{row['last_occurrence_at'].astimezone(UTC):%m-%d %H:%M}",
        shorten_id(owner, _MAX_NAME_CHARS),
    )
