"""What the study of signatures shows: its page, and tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from iosig.studies.pages import Block, Figure, Table
from iosig.studies.signatures import figures
from iosig.studies.signatures.bounds import DRAWS, KNOWN
from iosig.studies.signatures.counted_page import counted_blocks, counted_tables
from iosig.studies.signatures.family_page import family_blocks, family_tables
from iosig.studies.signatures.methods import DEFAULT, SWEEPS
from iosig.studies.signatures.running import Results
from iosig.studies.signatures.sites import DRIFT_RATIO, LEVELS, STUDIED, SiteSetting, seed_of
from iosig.studies.signatures.summary import (
    SIMILARITIES,
    best,
    burst_cell,
    differing,
    overall,
    short,
    similarity_cell,
    spread_cell,
    summary,
    table,
    targets,
    volume_cell,
)
from iosig.studies.signatures.timing import growth
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.methods import USUAL_METHODS
from iosig.transforms.synthetic.site import SiteParams

_SWEPT_WORDS = {
    "wavelet_level": "level of the wavelet transform",
    "gamma": "gamma: dense, share of samples",
    "kappa": "kappa: dense neighbour, share of samples",
}
_VERDICTS = {True: "reached", False: "not reached", None: "not studied"}
#: samples that are drawn of each application
_DRAWN_SAMPLES = 3


def document(results: Results) -> dict[str, object]:
    """Return the results as plain values."""
    return {
        "seed_count": results.params.seed_count,
        "seed": results.params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "targets": [asdict(target) for target in targets(results)],
        "summary": summary(results.answers).to_dicts(),
        "times": results.times.to_dicts(),
    }


# ---- tables


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles, and tables that are no wider than 100 characters."""
    summed = summary(results.answers)
    levels = summed.filter(pl.col("experiment") == "levels")
    applications = summed["application"].unique(maintain_order=True).to_list()
    columns = ("level", "method", *applications)
    keys = ("level", "method")
    if not levels.is_empty():
        cells = {
            "Cross-correlation/correlation with the truth, means": similarity_cell,
            "Volume to the true one, and seeds with exactly the true bursts": volume_cell,
            "Bursts missed, and false ones, means": burst_cell,
        }
        for title, cell in cells.items():
            yield title, Table(columns, list(table(levels, keys, cell)))
    yield from family_tables(results)
    yield from counted_tables(results)
    yield from _varied(results, summed, applications)
    if not results.times.is_empty():
        yield "Time for one set [ms]", _time_table(results.times)
    if not levels.is_empty():
        yield "What was aimed at", _target_table(results)


def _target_table(results: Results) -> Table:
    rows = [(target.text, target.wanted, target.found, _VERDICTS[target.is_reached]) for target in targets(results)]
    return Table(("", "wanted", "found", ""), rows)


def _varied(results: Results, summed: pl.DataFrame, applications: Sequence[str]) -> Iterator[tuple[str, Table]]:
    titles = {
        **{name: f"iosi by {name.replace('_', ' ')}, busy: cross-correlation/correlation" for name in _SWEPT_WORDS},
        "drift": "Runs whose computing differs, calm: cross-correlation/correlation",
        "faults": "Polls lost as usual, busy: cross-correlation/correlation",
        "edison": "Among real traffic: cross-correlation/correlation",
    }
    for experiment, title in titles.items():
        chosen = differing(results) if experiment == "drift" else summed.filter(pl.col("experiment") == experiment)
        if chosen.is_empty():
            continue
        keys = ("value", "method") if experiment not in ("faults", "edison") else ("method",)
        rows = [
            (f"{float(row[0]):g}", *row[1:]) if len(keys) == 2 else row for row in table(chosen, keys, similarity_cell)
        ]
        yield title, Table((*keys, *applications), rows)


def _time_table(times: pl.DataFrame, corner: str = "") -> Table:
    """Return the times [ms] by samples and by points: a row for each, a column for each method."""
    methods = times["method"].unique(maintain_order=True).to_list()
    rows = []
    for by, value in times.select("by", "value").unique(maintain_order=True).rows():
        found = times.filter(by=by, value=value)
        cells = dict(found.select("method", "seconds").rows())
        rows.append((f"{value} {by}", *(f"{1000 * cells[name]:.3g}" for name in methods)))
    return Table((corner, *methods), rows)


def _overall_rows(summed: pl.DataFrame) -> Iterator[Sequence[str]]:
    """Yield a row for each method of `levels`: means over applications, a cell for each level."""
    found = overall(summed)
    levels = found["level"].unique(maintain_order=True).to_list()
    for method in found["method"].unique(maintain_order=True).to_list():
        rows = {row["level"]: row for row in found.filter(method=method).iter_rows(named=True)}
        yield (
            method,
            *(
                f"{similarity_cell(rows[level])}, {short(rows[level]['mean_volume_ratio'])}, "
                f"{100 * rows[level]['clean_ratio']:.0f} %"
                for level in levels
            ),
        )


# ---- figures


def _of(summed: pl.DataFrame, experiment: str) -> pl.DataFrame:
    return summed.filter(pl.col("experiment") == experiment)


def _others(summed: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the lost polls and of the real traffic, in words."""
    words = {"faults": "busy, polls lost", "edison": "real traffic (Edison)"}
    return (
        summed.filter(pl.col("experiment").is_in(list(words)))
        .with_columns(level=pl.col("experiment").replace_strict(words, return_dtype=pl.String))
        .sort("level", maintain_order=True)
    )


def _examples(results: Results) -> list[figures.Example]:
    """Return what the first busy site shows: the whole runs' first samples, the truth, and every signature."""
    drawn = SiteSetting(foreign_level=LEVELS["busy"], days=results.params.days).drawn(seed_of(results.params.seed, 0))
    found = [(method.name, method.extract(drawn.sets)) for method in results.methods]
    examples = []
    for place, (application, truth) in enumerate(zip(drawn.applications, drawn.truths, strict=True)):
        one = drawn.sets.one(place)
        whole = np.flatnonzero(one.duration_s > 0.95 * len(truth.bytes_per_s))[:_DRAWN_SAMPLES]
        curves: list[tuple[str, Reals, float]] = [
            *((f"sample {number}", one.rates[run], one.interval_s) for number, run in enumerate(whole, start=1)),
            ("truth", truth.bytes_per_s, 1.0),
            *((name, signatures[place].bytes_per_s, 1.0) for name, signatures in found),
        ]
        examples.append(figures.Example(application.name, curves))
    return examples


def _draw_sweeps(summed: pl.DataFrame, path: Path) -> None:
    varied = [figures.Varied(sweep.name, _SWEPT_WORDS[sweep.name], sweep.usual) for sweep in SWEEPS]
    title = "iosi by its parameters, busy (paper: Figures 17 and 18); dashed: the paper's values"
    figures.draw_sweeps(summed, varied, title, path)


# ---- the page


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    params = results.params
    summed = summary(results.answers)
    levels = _of(summed, "levels")
    names = [application.name for application in STUDIED]
    yield "# How near signatures come to the truth"
    yield (
        "Every method that extracts signatures, on samples of applications whose I/O alone is known. The evaluation is "
        'that of IOSI (Liu et al., "Automatic Identification of Application I/O Signatures from Noisy Server-Side '
        f"Traces\", FAST'14, section 6), on simulated sites: {params.seed_count} for each level of other users' "
        f"activity. Seed {params.seed}."
    )
    yield Table(("method", "what it is"), [(method.name, method.doc) for method in results.methods])
    yield "## In short"
    yield Table(("method", *LEVELS), list(_overall_rows(levels)))
    yield (
        "Means over seeds and applications: cross-correlation/correlation with the truth, volume to the true one, and "
        "how often exactly the true bursts were found. A method that gives no signature counts as one that says that "
        "there is no I/O: 0, and all bursts missed."
    )
    yield "## What was aimed at"
    yield _target_table(results)
    yield from _accuracy(results, levels, names)
    yield from family_blocks(results)
    yield from counted_blocks(results)
    yield from _parameters(summed, names)
    yield from _conditions(results, summed, names)
    if not results.times.is_empty():
        yield from _times(results)
    yield "## How the samples are made"
    yield from _model(results)


def _accuracy(results: Results, levels: pl.DataFrame, names: Sequence[str]) -> Iterator[Block]:
    columns = ("level", "method", *names)
    keys = ("level", "method")
    yield "## Accuracy"
    title = f"{_agreement(levels)} (paper: Figure 16)"
    yield Figure("Accuracy", "accuracy", partial(figures.draw_accuracy, levels, title))
    yield "Cross-correlation and correlation with the truth, means ± standard deviations over seeds:"
    yield Table(columns, list(table(levels, keys, spread_cell)))
    yield "The method with the highest mean:"
    yield Table(("level", "", *names), list(_winners(levels, names)))
    yield "Volume to the true one, and how often exactly the true bursts were found:"
    yield Table(columns, list(table(levels, keys, volume_cell)))
    yield "Bursts missed, and false ones, means:"
    yield Table(columns, list(table(levels, keys, burst_cell)))
    title = "Samples, truth and signatures, busy (paper: Figures 12 to 15)"
    yield Figure("Examples", "examples", partial(figures.draw_examples, _examples(results), title))


def _agreement(rows: pl.DataFrame) -> str:
    """Return the means over applications that the default and the paper's method reach, by level."""
    told = []
    for method in (DEFAULT, "iosi"):
        means = rows.filter(method=method).group_by("level", maintain_order=True)
        values = means.agg(pl.col("mean_cross_correlation").mean()).iter_rows()
        told.append(f"{method} {', '.join(f'{value:.2f} ({level})' for level, value in values)}")
    return f"Cross-correlation with the truth: {'; '.join(told)}"


def _winners(levels: pl.DataFrame, names: Sequence[str]) -> Iterator[Sequence[str]]:
    for level in levels["level"].unique(maintain_order=True).to_list():
        for yardstick in SIMILARITIES:
            winner = best(levels, level, yardstick)
            yield (level, yardstick.replace("_", "-"), *(winner.get(name, "-") for name in names))


def _parameters(summed: pl.DataFrame, names: Sequence[str]) -> Iterator[Block]:
    swept = summed.filter(pl.col("experiment").is_in(list(_SWEPT_WORDS)))
    if swept.is_empty():
        return
    yield "## IOSI's parameters"
    yield Figure("Parameters of iosi", "sweeps", partial(_draw_sweeps, summed))
    yield Table(("parameter", "value", *names), list(table(swept, ("experiment", "value"), similarity_cell)))
    yield (
        "The paper finds a wavelet level of 2, gamma of 50 % and kappa of 90 % best. Busy sites; all other parameters "
        "at the paper's values."
    )


def _conditions(results: Results, summed: pl.DataFrame, names: Sequence[str]) -> Iterator[Block]:
    drift = differing(results)
    if not drift.is_empty():
        yield "## Runs that differ"
        yield (
            "Runs of one application do not compute equally long. What all of a run's computing is multiplied by has "
            "this standard deviation, and each of its waits has 30 % of it more; of a simulated site it is "
            f"{100 * SiteParams().drift_ratio:g} % if nothing is said. This study takes {100 * DRIFT_RATIO:g} %: how "
            "fast a run alone would have been is not in the samples, and IOSI's premise is that noise only prolongs "
            "runs. Calm sites; `dtw`, which takes longest, is left out."
        )
        yield (
            "Two lines are of no method: they know without any noise how long each of ten whole runs computed before "
            f"each burst (means of {DRAWS} draws). `{KNOWN[0]}` takes the mean, which is about the best that samples "
            f"can tell; `{KNOWN[1]}` takes the shortest run, as IOSI's duration correction does, and shows what that "
            "costs. Short bursts late in a long run lose most."
        )
        ends = drift.filter(pl.col("value").is_in([drift["value"].min(), drift["value"].max()]))
        ends = ends.with_columns(level=pl.format("{} %", (100 * pl.col("value")).round(3)))
        title = f"Runs whose computing differs, calm: {_agreement(ends)}"
        yield Figure("Runs that differ", "drift", partial(figures.draw_drift, drift, title))
        rows = [(f"{100 * float(row[0]):g} %", *row[1:]) for row in table(drift, ("value", "method"), similarity_cell)]
        yield Table(("", "method", *names), rows)
    others = _others(summed)
    if others.is_empty():
        return
    yield "## Lost polls, and real traffic" if results.params.polls else "## Lost polls"
    title = _agreement(others)
    yield Figure("Lost polls and real traffic", "others", partial(figures.draw_accuracy, others, title))
    yield Table(("", "method", *names), list(table(others, ("level", "method"), spread_cell)))
    if results.params.polls:
        yield _edison()


def _edison() -> str:
    return (
        "Real traffic: 17 hours of a scratch file system of NERSC's Edison (2018-02-09, 24 targets, polled every 5 s), "
        "which storms of up to 60 GB/s are part of. Runs are injected into it at random times, each application into a "
        "copy of its own. Others slow a run's transfers as on simulated sites: as many bytes as the run itself would "
        "move cost it what one other stream does. What others do is as it was measured. So the noise is real, and what "
        "it does to runs is modelled."
    )


def _times(results: Results) -> Iterator[Block]:
    yield "## Time"
    most = results.times.filter(by="points").filter(pl.col("value") == pl.col("value").max())
    told = ", ".join(
        f"{name} {1000 * time_s:,.{1 if time_s < 0.1 else 0}f} ms"
        for name, time_s in most.select("method", "seconds").iter_rows()
    )
    title = f"A set of 8 samples of {float(most['value'][0]):,.0f} points takes {told} (paper: Figure 19)"
    yield Figure("Time", "times", partial(figures.draw_times, results.times, title))
    yield _time_table(results.times, "ms")
    exponents = ", ".join(f"{name} {value:.2f}" for name, value in growth(results.times).items())
    yield (
        "Medians of one set's times, in one process and in turn; preprocessing is part of them, the search for "
        "outliers is not. They are this machine's, and no other results depend on them. The samples of the left half "
        "have about 2,000 points of 1 s; the right half is of 8 samples. Time grows with length to the power of: "
        f"{exponents}."
    )


def _model(results: Results) -> Iterator[str]:
    site = SiteParams()
    bandwidth = site.controller_count * site.controller_bytes_per_s
    yield (
        "An application is a list of bursts, each with its time, volume and peak. IOR_A writes 128 GB every 300 s, "
        "IOR_B 64 and 16 GB by turns every 120 s, IOR_C 64, 32 and 16 GB by turns every 120 s, all at 2.5 to 2.7 GB/s "
        "(section 6.1). The S3D-like one writes 61.2 GB at each of eight checkpoints within an hour, 3.4 MB from each "
        "of 18,000 processes, at 4.2 to 6 GB/s (section 6.2: bursts are short and of uneven height). The irregular "
        "one, flash, has seven bursts of 6 to 90 GB without a regular step. Each runs ten times within five days; "
        f"{100 * site.stop_ratio:g} % of the runs are stopped early, and most of those are begun again where they "
        "stopped: such runs are samples too."
    )
    yield (
        "They share a storage system with each other and with everybody else: a persistent background of 0.1 GB/s, "
        "interactive transfers, foreign jobs of a period of their own, and rare storms that take half of the "
        f"bandwidth of {bandwidth / 1e9:g} GB/s. Whoever moves bytes at the same time is slowed, so that bursts are "
        "stretched and all that follows is delayed. Busy sites have twice the foreign activity of calm ones, stormy "
        "ones four times. Servers are polled every 2 s, at times that have nothing to do with the runs'. The seeds of "
        "the sites are the same for all levels."
    )
    yield (
        "A method sees nothing but the samples: for each run, the mean rate of all writes in each step from its start "
        "to its end by the job log. The truth is the application's own rate in each second. "
        f"`{DEFAULT}` is what is published if nothing else is asked for: of each set the answer of "
        f"{' or '.join(USUAL_METHODS)} that is trusted most. Yardsticks: normalized "
        "cross-correlation (the largest over all lags), Pearson's correlation as the curves lie in time, total volume, "
        "and bursts that have no counterpart. Where polls are lost, they are as on a "
        "simulated site if nothing is said: single polls, a controller for up to two hours, all of them for minutes."
    )
