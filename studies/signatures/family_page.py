"""What the families say: the means of each, and of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import polars as pl

from iosig.studies.pages import Block, Figure, Table
from iosig.studies.signatures.families import FAMILIES, FOREIGN_LEVELS, REAL, REAL_PIECE_HOURS, Family
from iosig.studies.signatures.figures import draw_trust
from iosig.studies.signatures.judging import HELD_OUT, held_out
from iosig.studies.signatures.methods import LACKING, ORACLES
from iosig.studies.signatures.running import FAMILY, Results
from iosig.studies.signatures.scores import CHOSEN
from iosig.studies.signatures.sites import IOR
from iosig.studies.signatures.summary import SIMILARITIES, short, similarity_cell, summary, table
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.methods import USUAL_METHODS

#: those that are told of together
_GROUPS = {"IOR_A to C": IOR, "s3d": ("s3d",), "flash": ("flash",)}
_KNOWN_IN_TIME = [family.name for family in FAMILIES if family.is_known_in_time]


#: what is told of each family; the others are on the page of all
_MAIN = (HELD_OUT, CHOSEN, "warped", "robust", "quantile", *(method.name for method in ORACLES))


def of_families(results: Results) -> pl.DataFrame:
    """Return the answers among the families, with the family's name as `family`; none where they were not asked."""
    name = pl.col("experiment").str.strip_prefix(FAMILY)
    return results.answers.filter(pl.col("experiment").str.starts_with(FAMILY)).with_columns(family=name)


def _answers(results: Results) -> pl.DataFrame:
    """Return the answers among the families, with those of weights of other families as a method of their own."""
    answers = of_families(results)
    apart = held_out(answers).filter(method=HELD_OUT).drop("told")
    return pl.concat([apart, answers.filter(pl.col("method") != LACKING.name)])


def family_tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles, and tables that are no wider than 100 characters."""
    if of_families(results).is_empty():
        return
    answers = _answers(results)
    yield "Families: mean cross-correlation/correlation, volume, seeds with exactly the bursts", _overall(answers)
    yield "Each family: mean cross-correlation/correlation", _each(answers)
    yield "Aims among families", _aims(answers)
    yield (
        "Trust told by other families' weights, and the correlation found",
        _calibration(held_out(of_families(results)).drop_nulls("told")),
    )


def family_blocks(results: Results) -> Iterator[Block]:
    """Yield what the page says of the families."""
    if of_families(results).is_empty():
        return
    answers = _answers(results)
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
        "cross-correlation/correlation, volume to the true one, and how often exactly the true bursts were found. "
        f"`{CHOSEN}` is what is published: of each set the answer that is trusted most of those that "
        f"are asked if nothing is said ({', '.join(USUAL_METHODS)}). `{HELD_OUT}` is the same by "
        "weights of evidence that were made of all other families here; those of `chosen` were made of all of them, at "
        "other seeds. All other numbers of the methods were chosen on all families at other seeds, too. The oracles "
        "are asked of the runs' own bytes, slowed and drifting as they are: what is missing there to 1 is lost before "
        "anybody else's byte is seen."
    )
    yield _overall(answers)
    yield "What was aimed at, among the same families:"
    yield _aims(answers)
    yield "Each family, cross-correlation/correlation with the truth, means over seeds:"
    yield _each(answers)
    if REAL.name in answers["family"]:
        yield "Real traffic, correlation of the chosen answer less that of the quantile, over the pieces:"
        yield _real(answers)
    yield from _drifting(answers)
    yield from _trusted(results)


def _trusted(results: Results) -> Iterator[Block]:
    told = held_out(of_families(results)).drop_nulls("told")
    if told.is_empty():
        return
    yield "## Trust"
    yield (
        "The correlation with the truth that is told of each signature, by weights of evidence that were made of all "
        f"other families, beside what was found, in ten bins; also of signatures that lack bursts (`{LACKING.name}`). "
        "Means and numbers of signatures:"
    )
    off = told.select((pl.col("told") - pl.col("correlation").fill_null(0.0).clip(0.0)).abs().median()).item()
    title = f"Trust by other families' weights is off by {off:.2f} in the median"
    yield Figure("Trust", "trust", partial(draw_trust, told, title))
    yield _calibration(told)


def _calibration(told: pl.DataFrame) -> Table:
    """Return what is told and found in ten bins, of all families and by family the chosen answers."""
    rows = told.filter(pl.col("method") != HELD_OUT).with_columns(
        bin=(pl.col("told") * 10).floor().clip(0, 9).cast(pl.Int64)
    )
    cells = [
        (f"{number / 10:g} to {(number + 1) / 10:g}", *_told_found(own))
        for (number,), own in rows.group_by("bin", maintain_order=True)
    ]
    families = [
        (str(name), *_told_found(own))
        for (name,), own in told.filter(method=HELD_OUT).group_by("family", maintain_order=True)
    ]
    return Table(("told, all methods; chosen answers", "told", "found", "signatures"), [*sorted(cells), *families])


def _told_found(rows: pl.DataFrame) -> tuple[str, str, str]:
    told, found = (rows[name].fill_null(0.0).clip(0.0).to_numpy().mean() for name in ("told", "correlation"))
    return f"{told:.2f}", f"{found:.2f}", f"{rows.height:,}"


_AIMS = {
    "calm": {"IOR_A to C": (0.97, 0.94), "s3d": (0.93, 0.88)},
    "busy": {"IOR_A to C": (0.95, 0.91), "s3d": (0.92, 0.86)},
    "stormy": {"IOR_A to C": (0.90, 0.82), "s3d": (0.88, 0.80)},
}


def _aims(answers: pl.DataFrame) -> Table:
    """Return what was aimed at beside the chosen answers by other families' weights, and the better oracle."""
    summed = summary(answers.filter(pl.col("family").is_in(_KNOWN_IN_TIME)))
    rows = []
    for level, aims in _AIMS.items():
        for group, aim in aims.items():
            own = summed.filter(pl.col("application").is_in(list(_GROUPS[group])), level=level)
            means = own.group_by("method").agg(pl.col(f"mean_{name}").mean() for name in SIMILARITIES)
            found = {row[0]: row[1:] for row in means.rows()}
            oracles = [found[method.name] for method in ORACLES if method.name in found]
            bound = [max(values) for values in zip(*oracles, strict=True)] if oracles else []
            rows.append((f"{level}, {group}", _pair(aim), _pair(found.get(HELD_OUT, ())), _pair(bound)))
    return Table(("held-out families", "wanted", "found", "oracle"), rows)


def _pair(values: Sequence[float]) -> str:
    return "/".join(map(short, values)) or "-"


def _drifting(answers: pl.DataFrame) -> Iterator[Block]:
    """Yield what is found of bursts where runs drift so much that no method knows the time scale."""
    names = [family.name for family in FAMILIES if not family.is_known_in_time]
    summed = summary(
        answers.filter(pl.col("family").is_in(names), pl.col("method").is_in([CHOSEN, "warped", "robust"]))
    )
    if summed.is_empty():
        return
    yield "Where runs drift by 1 % and more: bursts missed and false ones, means, and seeds with exactly the true ones:"
    named = summed.with_columns(family=pl.col("experiment").str.strip_prefix(FAMILY))
    applications = summed["application"].unique(maintain_order=True).to_list()
    rows = table(named, ("family", "level", "method"), _burst_cell)
    yield Table(("family", "level", "method", *applications), list(rows))


def _burst_cell(row: dict[str, float]) -> str:
    return f"{row['mean_missed_count']:.1f}, {row['mean_false_count']:.1f}, {100 * row['clean_ratio']:.0f} %"


def _mean_and_error(values: Reals) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():+.3f} ± {error:.3f}"


def _real(answers: pl.DataFrame) -> Table:
    """Return the gain over the quantile on real traffic, with its standard error over the pieces."""
    rows = answers.filter(pl.col("method").is_in([HELD_OUT, "quantile"]), family=REAL.name)
    means = rows.group_by("level", "application", "value", "method", maintain_order=True).agg(
        pl.col("correlation").fill_null(0.0).mean()
    )
    gains = means.pivot("method", index=["level", "application", "value"], values="correlation").with_columns(
        gain=pl.col(HELD_OUT) - pl.col("quantile")
    )
    cells = {
        key: _mean_and_error(own["gain"].to_numpy())
        for key, own in gains.group_by("level", "application", maintain_order=True)
    }
    applications = gains["application"].unique(maintain_order=True).to_list()
    return Table(
        ("level", *applications), [(level, *(cells[level, name] for name in applications)) for level in FOREIGN_LEVELS]
    )


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
    chosen = answers.filter(pl.col("method").is_in(_MAIN))
    summed = summary(chosen.with_columns(value=pl.lit(0.0)))
    named = summed.with_columns(family=pl.col("experiment").str.strip_prefix(FAMILY))
    applications = summed["application"].unique(maintain_order=True).to_list()
    return Table(
        ("family", "level", "method", *applications), list(table(named, ("family", "level", "method"), similarity_cell))
    )
