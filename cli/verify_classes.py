"""`iosig verify-classes`: write a page to verify classes by hand, and score the classes by the landed reviews."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from iosig.cli.options import DAY, GlobalOptions, json_option, refuse, release_option, select_release, strict_option

if TYPE_CHECKING:
    from iosig.answers.reviews.draw import ReviewQuery
    from iosig.answers.reviews.score import Score, ScoresDocument
    from iosig.warehouse.releases.releases import Release


@click.command("verify-classes")
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with runs drawn at random, and buttons for the verdicts, to this HTML file.",
)
@click.option("--reviewer", metavar="NAME", help="Name in the reviews of the page.")
@click.option(
    "--count",
    "max_count",
    default=50,
    show_default=True,
    type=click.IntRange(1, 2000),
    help="Maximum number of runs on the page.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random draw.")
@click.option("--direction", type=click.Choice(["read", "write"]), help="Draw only this direction.")
@click.option("--since", type=DAY, metavar="DAY", help="Draw runs that ended on this UTC day or later.")
@click.option("--until", type=DAY, metavar="DAY", help="Draw runs that ended on this UTC day or earlier.")
@release_option
@json_option
@strict_option
@click.pass_obj
def verify_classes_command(
    warehouse: GlobalOptions,
    page: Path | None,
    reviewer: str | None,
    max_count: int,
    seed: int,
    direction: Literal["read", "write"] | None,
    since: datetime | None,
    until: datetime | None,
    release_id: str | None,
    as_json: bool,
) -> int:
    """Verify classes and periods by hand (PEARC'18, section 5).

    With --page, writes a page that shows the series of runs drawn at random, with their classes and periods. The page
    saves the verdicts as CSV: land the file with `iosig land`, and run the next night.

    Without --page, prints the accuracy of classes and periods by all landed reviews.
    """
    refuse(
        (page is not None and not reviewer, "--page needs --reviewer NAME, which the reviews name."),
        (page is not None and as_json, "--json prints the scores; it has no effect with --page."),
    )
    release = select_release(warehouse.store, release_id)
    if page is None:
        from iosig.answers.reviews.score import read_scores
        from iosig.cli.printing import show_json

        scores = read_scores(warehouse.store, release)
        show_json(scores) if as_json else _show(scores)
        return 0
    from iosig.answers.reviews.draw import ReviewQuery

    first, last = (None if at is None else at.date() for at in (since, until))
    query = ReviewQuery(max_count, seed, reviewer or "", direction, first, last)
    _write_page(warehouse, release, query, page)
    return 0


def _write_page(warehouse: GlobalOptions, release: Release, query: ReviewQuery, target: Path) -> None:
    from iosig.answers.reviews.draw import draw_runs
    from iosig.cli.printing import say
    from iosig.reports.reviews.page import ReviewView, render_page
    from iosig.reports.texts import format_count
    from iosig.warehouse.contracts.reviews import LABEL_VERDICTS, PERIOD_VERDICTS
    from iosig.warehouse.placing import atomic_write
    from iosig.warehouse.sources.reviews.source import COLUMNS

    runs = draw_runs(warehouse.store, release, query)
    view = ReviewView(release.release_id, query.reviewer, runs, COLUMNS, LABEL_VERDICTS, PERIOD_VERDICTS)
    with atomic_write(target.absolute()) as temporary:
        temporary.write_text(render_page(view), encoding="utf-8")
    say(f"Written: {target}, with {format_count(runs.height, 'run')}. Open it in a browser.", err=True)


def _show(scores: ScoresDocument) -> None:
    from iosig.cli.printing import say, show
    from iosig.reports.texts import format_count

    say(f"{format_count(scores.review_count, 'review')} by {format_count(scores.reviewer_count, 'reviewer')}")
    show(
        "Classes: share of reviews that agree with the release, with its 95 % interval",
        ("direction", "basis", "class", "reviews", "correct", "low", "high"),
        [
            (row.direction, row.basis, row.label or "all", row.review_count, *_format_ratios(row))
            for row in scores.classes
        ],
    )
    show(
        "Verdicts that differ from the release",
        ("direction", "class", "verdict", "reviews"),
        [
            (row.direction, row.label, row.label_verdict, row.review_count)
            for row in scores.confusion
            if row.label != row.label_verdict
        ],
    )
    show(
        "Periods",
        ("direction", "reviews", "correct", "low", "high"),
        [(row.direction, row.review_count, *_format_ratios(row)) for row in scores.periods],
    )
    if scores.agreement_ratio is not None:
        say(f"Reviewers agree on {scores.agreement_ratio:.0%} of the runs that several of them reviewed.")
    for count, text in (
        (scores.unsure_count, "without a class: the reviewer was unsure"),
        (scores.unmatched_count, "of runs without a class in this release"),
    ):
        if count:
            say(f"{format_count(count, 'review')} {text}.")


def _format_ratios(score: Score) -> tuple[str, str, str]:
    """Format the share of correct reviews and its interval."""
    return f"{score.correct_ratio:.0%}", f"{score.low_ratio:.0%}", f"{score.high_ratio:.0%}"
