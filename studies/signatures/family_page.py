"""What the families say: the means of each, and of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from studies.pages import Block, Table
from studies.signatures.families import FAMILIES, FOREIGN_LEVELS, REAL, REAL_PIECE_HOURS, Family
from studies.signatures.running import FAMILY, Results
from studies.signatures.sites import IOR
from studies.signatures.summary import SIMILARITIES, short, similarity_cell, summary, table

#: those that are told of together
_GROUPS = {"IOR_A to C": IOR, "s3d": ("s3d",), "flash": ("flash",)}
_KNOWN_IN_TIME = [family.name for family in FAMILIES if family.is_known_in_time]


def of_families(results: Results) -> pl.DataFrame:
    """Return the answers among the families, with the family's name as `family`; none where they were not asked."""
    name = pl.col("experiment").str.strip_prefix(FAMILY)
    return results.answers.filter(pl.col("experiment").str.starts_with(FAMILY)).with_columns(family=name)


def family_tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles, and tables that are no wider than 100 characters."""
    answers = of_families(results)
    if answers.is_empty():
        return
    yield "Families: mean cross-correlation/correlation, volume, seeds with exactly the bursts", _overall(answers)
    yield "Each family: mean cross-correlation/correlation", _each(answers)


def family_blocks(results: Results) -> Iterator[Block]:
    """Yield what the page says of the families."""
    answers = of_families(results)
    if answers.is_empty():
        return
    yield "## Many sites"
    yield (
        "Families of sites that differ in how runs drift, in what others cost a run, in what others do, in what runs "
        "do, and in how they are polled (`studies/signatures/families.py`: fixed before the methods were changed). A "
        "level is the mean of foreign traffic over the application's highest peak: "
        + ", ".join(f"{name} {value:g}" for name, value in FOREIGN_LEVELS.items())
        + ", the same in all families. Each run has a window of foreign traffic of its own."
    )
    yield Table(
        ("family", "runs drift by", "others cost", "others do", "runs do", "polls"), [_told(one) for one in FAMILIES]
    )
    if REAL.name in answers["family"]:
        yield _told_of_real()
    yield (
        f"Means over the families whose runs drift by less than 1 % ({', '.join(_KNOWN_IN_TIME)}): "
        "cross-correlation/correlation, volume to the true one, and how often exactly the true bursts were found. The "
        "oracles are asked of the runs' own bytes, slowed and drifting as they are: what is missing there to 1 is lost "
        "before anybody else's byte is seen."
    )
    yield _overall(answers)
    yield "Each family, cross-correlation/correlation with the truth, means over seeds:"
    yield _each(answers)


def _told(family: Family) -> tuple[str, ...]:
    jitter = f" ± {100 * family.jitter_ratio:g} %" if family.jitter_ratio else ""
    cost = {"fair": "capacity of {:g} peaks, fairly shared", "seeks": "seeks, {:g} a peak", "latency": "{:g} s a peak"}
    return (
        family.name,
        f"{family.drift}, {100 * family.drift_ratio:g} %",
        cost[family.contention].format(family.contention_size),
        family.foreign.replace("_", " "),
        family.program,
        f"{family.interval_s:g} s{jitter}",
    )


def _told_of_real() -> str:
    return (
        f"`{REAL.name}` is real traffic: 16 of the 17 hours that one file system was polled, without the zeros after "
        f"them, reads and writes apart, in pieces of {REAL_PIECE_HOURS:g} hours that do not overlap, each scaled to "
        "the levels. It is one site."
    )


def _overall(answers: pl.DataFrame) -> Table:
    """Return the means over families that are known in time: a row for each level and method."""
    chosen = summary(answers.filter(pl.col("family").is_in(_KNOWN_IN_TIME)))
    rows = []
    for level, method in (
        chosen.select("level", "method").unique(maintain_order=True).sort("level", maintain_order=True).rows()
    ):
        own = chosen.filter(level=level, method=method)
        rows.append((level, method, *(_cell(own, names) for names in _GROUPS.values())))
    return Table(("level", "method", *_GROUPS), rows)


def _cell(rows: pl.DataFrame, names: Sequence[str]) -> str:
    own = rows.filter(pl.col("application").is_in(list(names))).select(pl.selectors.numeric().mean()).to_dicts()[0]
    both = "/".join(short(own[f"mean_{name}"]) for name in SIMILARITIES)
    return f"{both}, {short(own['mean_volume_ratio'])}, {100 * own['clean_ratio']:.0f} %"


def _each(answers: pl.DataFrame) -> Table:
    summed = summary(answers.with_columns(value=pl.lit(0.0)))
    named = summed.with_columns(family=pl.col("experiment").str.strip_prefix(FAMILY))
    applications = summed["application"].unique(maintain_order=True).to_list()
    return Table(
        ("family", "level", "method", *applications), list(table(named, ("family", "level", "method"), similarity_cell))
    )
