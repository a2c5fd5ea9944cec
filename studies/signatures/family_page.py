"""What the families say: the means of each, and of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from iosig.studies.pages import Table, short
from iosig.studies.signatures.families import FAMILIES, FOREIGN_LEVELS, REAL, Family
from iosig.studies.signatures.figures import draw_trust
from iosig.studies.signatures.judging import HELD_OUT, held_out
from iosig.studies.signatures.methods import LACKING, ORACLES
from iosig.studies.signatures.running import FAMILY, Results
from iosig.studies.signatures.scores import CHOSEN
from iosig.studies.signatures.sites import IOR
from iosig.studies.signatures.summary import BURST_CELL, SIMILARITIES, SIMILARITY_CELL, summary
from iosig.transforms.arrays import Reals

#: those that are told of together
_GROUPS = {"IOR_A to C": IOR, "s3d": ("s3d",), "flash": ("flash",)}
_KNOWN_IN_TIME = [family.name for family in FAMILIES if family.is_known_in_time]


#: what is told of each family; the others are on the page of all
_MAIN = (HELD_OUT, CHOSEN, "elastic", "robust", "quantile", *(method.name for method in ORACLES))


def of_families(results: Results) -> pl.DataFrame:
    """Return the answers among the families, with the family's name as `family`; none where they were not asked."""
    name = pl.col("experiment").str.strip_prefix(FAMILY)
    return results.answers.filter(pl.col("experiment").str.starts_with(FAMILY)).with_columns(family=name)


def _answers(results: Results) -> pl.DataFrame:
    """Return the answers among the families, with those of weights of other families as a method of their own."""
    answers = of_families(results)
    apart = held_out(answers).filter(method=HELD_OUT).drop("told")
    return pl.concat([apart, answers.filter(pl.col("method") != LACKING.name)])


def family_values(results: Results) -> dict[str, object] | None:
    """Return what the page has of the families; None if they were not studied."""
    if of_families(results).is_empty():
        return None
    answers, told = _answers(results), _told(results)
    columns = ("family", "runs drift by", "others cost", "others do", "runs do", "polls")
    return {
        "described": Table(columns, [_described(family) for family in FAMILIES]),
        "known_in_time": _KNOWN_IN_TIME,
        "overall": _overall(answers),
        "aims": _aims(answers),
        "each": _each(answers),
        "real": _real(answers) if REAL.name in answers["family"] else None,
        "drifting": _drifting(answers),
        "expected_correlation": None if told.is_empty() else _calibration(told),
    }


def _told(results: Results) -> pl.DataFrame:
    """Return the answers with the expected correlation by weights of all other families."""
    return held_out(of_families(results)).drop_nulls("told")


def draw_trust_of(results: Results, path: Path) -> None:
    """Draw the expected correlation by weights of all other families beside the correlation found."""
    told = _told(results)
    off = told.select((pl.col("told") - pl.col("correlation").fill_null(0.0).clip(0.0)).abs().median()).item()
    draw_trust(told, f"Trust by other families' weights is off by {off:.2f} in the median").write(path)


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
    return Table(("all methods; chosen answers", "expected", "actual", "signatures"), [*sorted(cells), *families])


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


def _drifting(answers: pl.DataFrame) -> Table | None:
    """Return what is found of bursts where runs drift so much that no method knows the time scale."""
    is_drifting = pl.col("family").is_in([family.name for family in FAMILIES if not family.is_known_in_time])
    rows = summary(answers.filter(is_drifting, pl.col("method").is_in([CHOSEN, "elastic", "robust"])))
    cell = f"{BURST_CELL}, {{clean_ratio:%0}}"
    return None if rows.is_empty() else Table.pivot(_named(rows), _KEYS, "application", cell)


#: headers and columns of tables by family
_KEYS = {"family": "family", "level": "level", "method": "method"}


def _named(summed: pl.DataFrame) -> pl.DataFrame:
    return summed.with_columns(family=pl.col("experiment").str.strip_prefix(FAMILY))


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


def _described(family: Family) -> tuple[str, ...]:
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
    summed = summary(answers.filter(pl.col("method").is_in(_MAIN)).with_columns(value=pl.lit(0.0)))
    return Table.pivot(_named(summed), _KEYS, "application", SIMILARITY_CELL)
