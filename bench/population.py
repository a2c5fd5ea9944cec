"""`uv run python -m bench.population --into DIR`: the population of a quarter of a large site, against its truth.

It asks the release that `bench.backfill --into DIR` has left there: the classes and periods of 80,815 jobs, of which
nothing but shared traffic tells, beside those of what each run itself did, as the site's maker drew it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from bench.backfill import FIRST_JOB, NODE_COUNT
from bench.signatures import Site, site
from iosig.answers.population.query import Asked, population
from iosig.transforms import classes
from iosig.transforms.arrays import offsets_of
from iosig.warehouse.releases.releases import find
from iosig.warehouse.store.store import Store

_INTERVAL_S = 2.0
#: two periods that differ by less are the same
_SAME = 0.1


def truth(of: Site) -> pl.DataFrame:
    """Return what each job did: job_id, true_label, true_period_s (NULL where it did less than three bursts)."""
    moved, count = of.transfers, len(of.duration_s)
    started_s = of.first * _INTERVAL_S - of.started_s
    bursts = np.bincount(moved.job, minlength=count)
    offsets = offsets_of(bursts)
    ended_s = started_s + of.duration_s
    volume = moved.bytes_per_s * moved.taken_s
    sections = classes.interval_sections(
        moved.begin_s, moved.begin_s + moved.taken_s, volume, offsets, started_s, ended_s
    )
    labels = classes.classify(classes.without_gaps(sections), np.full(count, float(NODE_COUNT)))["label"]
    # bursts are a little late each, so the first and the last one tell
    at = np.append(moved.begin_s, np.nan)
    period_s = (at[offsets[1:] - 1] - at[offsets[:-1]]) / np.maximum(bursts - 1, 1)
    return pl.DataFrame(
        {
            "subject_id": pl.Series(FIRST_JOB + np.arange(count)).cast(pl.String),
            "true_label": labels,
            "true_period_s": pl.Series(np.where(bursts >= 3, period_s, np.nan)).fill_nan(None),
        }
    )


def compared(runs: pl.DataFrame) -> Iterator[dict[str, object]]:
    """Yield how right classes and periods are, by direction and basis."""
    told = runs.filter(pl.col("label").is_not_null() & pl.col("true_label").is_not_null())
    is_right = pl.col("label") == pl.col("true_label")
    is_said, is_true = pl.col("period_s").is_not_null(), pl.col("true_period_s").is_not_null()
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < _SAME).fill_null(value=False)
    names = told["true_label"].unique().to_list()
    differences = [((pl.col("label") == name).mean() - (pl.col("true_label") == name).mean()).abs() for name in names]
    for key in (["direction"], ["direction", "basis"]):
        yield from (
            told.group_by(key)
            .agg(
                run_count=pl.len(),
                right_ratio=is_right.mean().round(3),
                shares_off_by=(pl.sum_horizontal(differences) / 2).round(3),
                said_periodic=is_said.mean().round(3),
                periodic=is_true.mean().round(3),
                right_of_said=is_same.filter(is_said).mean().round(3),
                right_of_periodic=is_same.filter(is_true).mean().round(3),
            )
            .sort(key)
            .to_dicts()
        )


def main() -> None:
    """Print what the release says, and how right that is, as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="where `bench.backfill` left its warehouse")
    parser.add_argument("--days", type=int, default=90)
    chosen = parser.parse_args()
    store = Store(chosen.into / f"warehouse-{chosen.days}")
    told = population(store, find(store, None), Asked())
    for row in compared(told.runs.join(truth(site()), on="subject_id", how="inner")):
        print(json.dumps(row))
    print(json.dumps({"shares": told.shares().to_dicts()}))


if __name__ == "__main__":
    main()
