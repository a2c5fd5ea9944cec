"""What the study shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports import panels, style
from iosig.studies.pages import Block, Figure, Table, percent
from iosig.studies.unexplained.planted import DAYS, LEAST_APPEARANCES
from iosig.studies.unexplained.real import DECOYS
from iosig.studies.unexplained.running import ATTRIBUTED, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

_OURS = "rest by likely rates"
_FOUND = (
    ("trains found", "{found_train_count} of {train_count}"),
    ("others found", "{found_single_count} of {single_count}"),
    ("false", "{false_count}"),
)
_COLOURS = (style.BLUE, style.ORANGE, style.GREEN)


def document(results: Results) -> dict[str, list[dict[str, object]]]:
    """Return the results as plain values."""
    return {name: getattr(results, name).to_dicts() for name in ("patterns", "tops", "runs", "days")}


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "What no log names", pattern_table(results)
    yield "What could be found", known_table(results)
    yield "Who is likely", top_table(results)
    if results.runs.height:
        yield "A real day", run_table(results)


def pattern_table(results: Results) -> Table:
    """Return how many planted applications were found at each level, and what was found beside them."""
    return Table.of(
        counted(results).filter(known=ATTRIBUTED),
        ("level", "{level}"),
        ("sites", "{site_count}"),
        *_FOUND,
        ("of the found unsure", "{unsure_found_count}"),
        ("logged, rightly named", "{right_count} of {told_count}"),
        ("others unsure", "{unsure_count}"),
    )


def known_table(results: Results) -> Table:
    """Return the same by how much is known of what others moved."""
    return Table.of(counted(results), ("level", "{level}"), ("what others moved is", "{known}"), *_FOUND)


def counted(results: Results) -> pl.DataFrame:
    """Return how many were planted and found, and what else was, by level and by what is known of others."""
    by = ("level", "known")
    planted, other = (results.patterns.filter(what=what) for what in ("planted", "other"))
    is_found = pl.col("outcome").is_in(["unnamed", "unsure"])
    is_train = pl.col("name").str.contains("train")
    found = planted.group_by(by, maintain_order=True).agg(
        train_count=is_train.sum(),
        found_train_count=(is_train & is_found).sum(),
        single_count=(~is_train).sum(),
        found_single_count=(~is_train & is_found).sum(),
        unsure_found_count=(pl.col("outcome") == "unsure").sum(),
        site_count=pl.struct("family", "seed").n_unique(),
    )
    beside = other.group_by(by).agg(
        false_count=(pl.col("outcome") == "unnamed").sum(),
        unsure_count=(pl.col("outcome") == "unsure").sum(),
        told_count=(pl.col("outcome") == "named").sum(),
        right_count=((pl.col("outcome") == "named") & pl.col("is_right")).sum(),
    )
    rows = found.join(beside, on=by, how="left", maintain_order="left")
    return rows.with_columns(pl.exclude(by).fill_null(0))


def summed(results: Results) -> pl.DataFrame:
    """Return the share of minutes in which the first three hold the job that moved most, by level and way."""
    sums = results.tops.group_by("level", "way", maintain_order=True).agg(pl.col("hits", "asked").sum())
    return sums.with_columns(top=pl.col("hits") / pl.col("asked"), minute_count=pl.col("asked").cast(pl.Int64))


def top_table(results: Results) -> Table:
    """Return how often the first three hold the job that moved most."""
    return Table.of(
        summed(results), ("level", "{level}"), ("way", "{way}"), ("minutes", "{minute_count:,}"), ("top 3", "{top:%}")
    )


def run_table(results: Results) -> Table:
    """Return the runs of a real day."""
    gib = {name: pl.col(name) / 2**30 for name in ("read_bytes", "written_bytes", "likely_bytes")}
    return Table.of(
        results.runs.with_columns(**gib),
        ("run", "{run}"),
        ("lasted [s]", "{lasted_s:.0f}"),
        ("read [GiB]", "{read_bytes:.0f}"),
        ("written [GiB]", "{written_bytes:.0f}"),
        ("told as likely [GiB]", "{likely_bytes:.0f}"),
    )


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# What is found in what signatures leave"
    yield (
        "Where no signature explains the traffic, two questions are left: what comes again there and is in no log, and "
        "who of the jobs of which nothing is known is likely to have moved it. "
        "[How both are answered](attribution.md#what-no-log-names)."
    )
    yield "## What no log names"
    yield _planted_words(results)
    yield pattern_table(results)
    yield (
        "How many could be found, had the night known to the byte what jobs with a signature moved, or even what all "
        "logged jobs did: the rest is hidden by what no signature can tell, and by chance."
    )
    yield known_table(results)
    yield "## Who is likely"
    yield _likely_words(results)
    yield Figure(
        "Minutes in which the first three hold the job that moved most", "tops", partial(draw_tops, summed(results))
    )
    yield top_table(results)
    if results.runs.height:
        yield "## A real day"
        yield _day_words(results)
        yield run_table(results)


def _planted_words(results: Results) -> str:
    count = results.params.seed_count
    sites = "site" if count == 1 else "sites"
    return (
        f"{count} {sites} of each of the [families](attribution-study.md#by-family) and levels, of {DAYS:g} days, "
        "which is what a night looks at, both directions. On each five applications are planted that no log names: "
        "two trains that last as long as the site, one of a third of it, one application of one burst and one of "
        "three, which appear 8 to 14 times a week, as they like. Periods, volumes and speeds are drawn: bursts move "
        "7 GB and more, those of the latter two 20 GB and more, so that none drowns in what always flows. Those that "
        f"were stopped before they came to {LEAST_APPEARANCES} appearances are not asked about. A planted one is found "
        "where a pattern consists of it, and no logged application is named for that; it may be unsure. False is what "
        "else is said to be nobody's. What logged jobs without a signature do comes again, too, and is to be named. "
        "What comes as it likes is found where the volume of five of its bursts is clean of others' bytes, or where "
        "two of them came at one distance three times with clean volumes: the busier a site is, the less often."
    )


def _likely_words(results: Results) -> str:
    tops = summed(results)
    told = ", ".join(f"{percent(row['top'])} ({row['level']})" for row in tops.filter(way=_OURS).iter_rows(named=True))
    alone = ", ".join(f"{percent(row['top'])}" for row in tops.filter(way="signatures alone").iter_rows(named=True))
    return (
        "On the same sites, in minutes of more than 1 GB/s: how often the first three jobs hold the one that moved "
        f"most, whether it has a signature or not. By signatures alone in {alone} of them; with all ranked by "
        f"likely rates of what is left, too, in {told}. Likely bytes rank jobs: nobody is given them."
    )


def _day_words(results: Results) -> str:
    runs, days = results.runs, results.days
    day, own, likely = (
        float(runs.select(each).item()) / 2**40
        for each in (
            pl.col("day_bytes").first(),
            pl.sum("read_bytes") + pl.sum("written_bytes"),
            pl.sum("likely_bytes"),
        )
    )
    first, top, asked = (float(days[name].sum()) for name in ("first", "top", "asked"))
    return (
        f"A scratch file system of NERSC's Edison (2018-02-09) moved {day:.1f} TiB while it was polled. Its log names "
        f"{runs.height} runs on it, benchmarks that had it nearly for themselves, during which {own:.1f} TiB flowed; "
        "the rest is of nobody who is logged. No program ran often enough for a signature, so attribution gives "
        f"nothing to anybody, and {likely:.1f} TiB are told as likely. Then {DECOYS} decoys are added: the runs on "
        f"other file systems, moved to this one, and copies of all at drawn hours. In {percent(first / asked)} of the "
        f"minutes of more than 2 GB/s the true run comes first, in {percent(top / asked)} it is among the first three "
        f"({asked / days.height:.0f} minutes, {days.height} draws)."
    )


def draw_tops(tops: pl.DataFrame, path: Path) -> None:
    """Draw bars of each level and way. tops: level, way, top."""
    panels.write((7.0, 3.2), lambda figure: _tops(figure, tops), path)


def _tops(figure: Drawn, tops: pl.DataFrame) -> None:
    axes = figure.subplots()
    levels, ways = (panels.in_order(tops, name) for name in ("level", "way"))
    width = 0.8 / len(ways)
    for number, (way, colour) in enumerate(zip(ways, _COLOURS, strict=True)):
        shares = [tops.filter(level=level, way=way)["top"].item() for level in levels]
        bars = axes.bar(np.arange(len(levels)) + (number - 1) * width, shares, width, color=colour, label=way)
        axes.bar_label(bars, [f"{100 * share:.0f} %" for share in shares], fontsize=8, padding=2)
    axes.set_xticks(range(len(levels)), levels)
    axes.set(ylim=(0, 1.1), yticks=(0, 0.5, 1))
    axes.set_ylabel("minutes in which the job\nthat moved most is named", fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="lower center", ncols=len(ways), fontsize=9)
    figure.tight_layout(rect=(0.0, 0.1, 1.0, 1.0))
