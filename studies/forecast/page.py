"""What the study of forecasts shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from iosig.studies.forecast.figures import draw_ranges
from iosig.studies.forecast.running import EVERY_S, Results, summed
from iosig.studies.forecast.told import HORIZON, PAST_DAYS, STEP_S
from iosig.studies.forecast.ways import WAYS
from iosig.studies.pages import Block, Figure, Table, percent
from iosig.studies.sites import FAMILIES, LEVELS

_OURS = "forecast"
_STEPS_AN_HOUR = 6
_CELLS = (
    ("in the range", "{held:%}"),
    ("below it", "{below:%}"),
    ("above it", "{above:%}"),
    ("width", "{width:.2f}"),
    ("error", "{error:.2f}"),
    ("score", "{score:.2f}"),
)


def document(results: Results) -> dict[str, list[dict[str, object]]]:
    """Return the results as plain values."""
    return {"sites": summed(results.steps, "way", "family", "level", "seed").to_dicts()}


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "What came, and the range", way_table(results)
    yield "By family", family_table(results)
    yield "By hour", hour_table(results)


def way_table(results: Results) -> Table:
    """Return how good each way is at each level."""
    return Table.of(summed(results.steps, "level", "way"), ("level", "{level}"), ("way", "{way}"), *_CELLS)


def family_table(results: Results) -> Table:
    """Return how good forecasts are in each family."""
    return Table.of(
        summed(results.steps.filter(way=_OURS), "family", "level"),
        ("family", "{family}"),
        ("level", "{level}"),
        *_CELLS,
    )


def hour_table(results: Results) -> Table:
    """Return how good each way is by how far ahead it looks."""
    hours = results.steps.with_columns(hour=pl.col("step") // _STEPS_AN_HOUR + 1)
    rows = summed(hours, "hour", "way").sort("hour", maintain_order=True)
    return Table.of(rows, ("hour", "{hour}"), ("way", "{way}"), *_CELLS)


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# How often what came was in the range of a forecast"
    yield (
        "Sites are simulated of which every transfer is known. What a night knows of the first "
        f"{PAST_DAYS:g} days is found in their traffic: signatures, what they explain, what flows beside it. Of the "
        f"fourth day nothing is known but what a forecast may know: every {EVERY_S / 3600:g} hours the "
        f"{HORIZON * STEP_S / 3600:g} hours to come are forecast in steps of {STEP_S / 60:g} minutes, with the traffic "
        "so far, and the jobs that run and wait: the simulator knows when each was submitted."
    )
    yield Table(("way", "what it does"), [(name, words) for name, (words, _) in WAYS.items()])
    yield _in_short(results)
    yield Figure("How often ranges hold, and how wide they are", "ranges", partial(draw_ranges, _by_site(results)))
    yield way_table(results)
    yield _words(results)
    yield "## By how far it looks ahead"
    yield hour_table(results)
    yield "## By family"
    yield Table(("family", "what it is"), [(name, words) for name, (words, _) in FAMILIES.items()])
    yield family_table(results)
    yield _limits()


def _by_site(results: Results) -> pl.DataFrame:
    return summed(results.steps, "level", "way", "family", "seed")


def _in_short(results: Results) -> str:
    every = summed(results.steps, "way")
    held = {row["way"]: percent(row["held"]) for row in every.iter_rows(named=True)}
    scores = {row["way"]: row["score"] for row in every.iter_rows(named=True)}
    first = summed(results.steps.filter(pl.col("step") < _STEPS_AN_HOUR), "way")
    soon = {row["way"]: row["score"] for row in first.iter_rows(named=True)}
    levels = ", ".join(
        f"{percent(row['held'])} ({row['level']})"
        for row in summed(results.steps.filter(way=_OURS), "level").iter_rows(named=True)
    )
    return (
        f"What came was in the 80 % range {held[_OURS]} of the time: {levels}. The score of a range, its width and ten "
        f"times what lies beyond it, is {scores[_OURS]:.2f} of the mean rate; {scores['without jobs']:.2f} without "
        f"jobs, {scores['as it goes']:.2f} where the last hour goes on, {scores['as ever']:.2f} where it is as ever. "
        f"In the first hour it is {soon[_OURS]:.2f}, {soon['without jobs']:.2f}, {soon['as it goes']:.2f} and "
        f"{soon['as ever']:.2f}."
    )


def _words(results: Results) -> str:
    count = results.params.seed_count
    levels = ", ".join(f"{level} {times:g}" for level, times in LEVELS.items())
    instants = results.steps["at_s"].n_unique()
    return (
        f"{count} {'site' if count == 1 else 'sites'} of each family and level, {instants} forecasts of each. A level "
        f"is others' activity in multiples of the usual: {levels}. Reads and writes together. Width: of the range, "
        "over the mean of what came. Error: how far what was expected was off, in the mean, over the same. Score: the "
        "interval score of Gneiting and Raftery (2007, doi:10.1198/016214506000001437, section 6.2), over the same: "
        "less is better, and neither narrow ranges that miss nor wide ones that hold all are good at it. In the figure "
        "a mark is a site."
    )


def _limits() -> str:
    return (
        "Jobs here wait some minutes before they start, and most of what comes after an hour is not submitted yet: "
        "what is known of jobs helps in the first hour, and what helps later is what the past was like. On a site "
        "whose jobs run for days, and wait for hours, more is known. That the hour of the day counts from seven days "
        "on only, and that ranges are made 5 % wider than the draws', was chosen on twelve sites of other seeds (960 "
        "to 971); all else was set beforehand. Single sites are further off than all together: a day like none of the "
        "three before it is in no range."
    )
