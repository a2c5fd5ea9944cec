"""`iosig who --unknown`: patterns of what nobody explains, as a table or as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from iosig.answers.attribution.patterns import Unknown
    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

_COLUMNS = ("pattern", "way", "times", "every", "bytes", "last seen", "whose")
#: of a name, so that a table fits a terminal of 80
_MOST_CHARACTERS = 16
_WHY = {"nothing_recurs": "nothing comes again", "too_short": "too little was polled to tell"}


def tell_unknown(
    store: Store,
    release: Release,
    filesystem: str,
    direction: str | None,
    window: tuple[datetime | None, datetime | None],
    most_count: int,
    *,
    as_json: bool,
) -> int:
    """Print the patterns of a file system that appeared in a time, or at all."""
    from iosig.answers.attribution.patterns import document, unknown

    told = unknown(store, release, filesystem, direction, window)
    if as_json:
        from iosig.cli.printing import show_json

        show_json(document(told, most_count, release.release_id))
    else:
        _show(told, most_count)
    return 0


def _show(told: Unknown, most_count: int) -> None:
    from iosig.cli.printing import show

    rows = told.patterns.head(most_count).to_dicts()
    more = told.patterns.height - most_count
    which = f", the first {most_count} of {told.patterns.height:,}" if more > 0 else ""
    if rows:
        show(f"{told.filesystem}: what nobody explains and comes again{which}", _COLUMNS, [_cells(row) for row in rows])
    for row in rows:
        if row["application_id"]:
            click.echo(_beside(row))
    for direction, why in told.nothing.items():
        click.echo(f"{direction}: {_WHY[why]}.")
    if not rows and not told.nothing:
        click.echo("Nothing that comes again appeared then.")


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    from iosig.reports.texts import duration_text, shortened, volume_text

    whose = {"unnamed": "nobody's", "unsure": "unsure"}.get(row["outcome"], row["application_id"] or "")
    return (
        row["pattern_id"][:8],
        row["direction"],
        row["appearance_count"],
        duration_text(row["period_s"]) if row["period_s"] else None,
        volume_text(row["appearance_bytes"]),
        f"{row['last_appeared_at'].astimezone(UTC):%m-%d %H:%M}",
        shortened(whose, _MOST_CHARACTERS),
    )


def _beside(row: dict[str, Any]) -> str:
    """Return whose runs were there, in a sentence."""
    from iosig.cli.printing import printable

    covered, runs = row["covered_appearance_count"], row["application_run_count"]
    return printable(
        f"{row['pattern_id'][:8]}: {covered} of {row['appearance_count']} in runs of {row['application_id']}, "
        f"seen in {row['covering_run_count']} of {runs} runs; by chance {row['chance_probability']:.1g}."
    )
