"""Tabulate the accuracy of signatures from per-job counters and from shared traffic, and the upper bound."""

from __future__ import annotations

import polars as pl

from iosig.studies.pages import Table
from iosig.studies.signatures.families import ALONE
from iosig.studies.signatures.methods import ORACLES
from iosig.studies.signatures.running import COUNTED, OWN, OWN_AND_OTHERS, SHARED, Results
from iosig.studies.signatures.scores import CHOSEN

_WITNESSES = {SHARED: "shared", OWN: "own", OWN_AND_OTHERS: "own_and_others"}


def summarize_job_counters(results: Results) -> pl.DataFrame:
    """Compute mean correlations with the truth by family, level and source of the samples, and the upper bound.

    Columns: family, level, shared (total traffic), own (a run's own bytes), own_and_others (these plus the interfering
    bytes), each of the chosen signatures; bound: of the better oracle. A missing signature counts as 0.
    """
    answers = results.answers.filter(pl.col("experiment").str.starts_with(COUNTED)).with_columns(
        pl.col("experiment").str.strip_prefix(COUNTED).alias("family"), pl.col("correlation").fill_null(0.0)
    )
    is_oracle = pl.col("method").is_in([method.name for method in ORACLES])
    means = (
        answers.filter((pl.col("method") == CHOSEN) | is_oracle)
        .group_by("family", "level", "value", "method", maintain_order=True)
        .agg(pl.col("correlation").mean())
    )
    is_chosen = pl.col("method") == CHOSEN
    correlations = (
        pl.col("correlation").filter(is_chosen, pl.col("value") == value).first().alias(name)
        for value, name in _WITNESSES.items()
    )
    return means.group_by("family", "level", maintain_order=True).agg(
        *correlations, pl.col("correlation").filter(~is_chosen).max().alias("bound")
    )


def build_job_counter_table(results: Results) -> Table | None:
    """Tabulate the correlations by family, and their means; None if not studied."""
    summary = summarize_job_counters(results)
    if summary.is_empty():
        return None
    names = [*_WITNESSES.values(), "bound"]
    gain = pl.col("own_and_others") - pl.col("shared")
    rows = summary.group_by("family", maintain_order=True).agg(
        pl.col(names).mean(), (gain < 0).sum().alias("below"), pl.len().alias("levels"), gain.min().alias("least")
    )
    columns = ("family", "shared traffic", "own bytes", "own and others", "bound", "below", "at most by")
    cells = [
        (
            row["family"],
            *(f"{row[name]:.3f}" for name in names),
            f"{row['below']} of {row['levels']}",
            f"{-row['least']:.3f}" if row["below"] else "-",
        )
        for row in rows.iter_rows(named=True)
    ]
    means = rows.filter(pl.col("family") != ALONE.name).select(pl.col(names).mean()).row(0)
    return Table(columns, [*cells, ("all but the first", *(f"{mean:.3f}" for mean in means), "", "")])
