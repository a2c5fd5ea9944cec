"""What the study of population shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.settings.model import Settings
from iosig.studies.drawing import legend_below, row_of_panels
from iosig.studies.pages import Draw, percent
from iosig.studies.population.running import Results
from iosig.studies.population.ways import WAYS
from iosig.studies.sites import DAYS, LEVELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TRUTH = "truth"
#: classes in the order of PEARC'18's tables
_LABELS = ("UNIFORM", "OTHER", "HILL", "CANYON", "START", "END", "NO_USAGE")
#: two periods that differ by less are the same, in shares of the true one
SAME_RATIO = 0.1
_ASKED = "traffic"
_OURS = "signature"
_COLOURS = (style.INK, style.ORANGE, style.BLUE, style.GREEN)


def document(results: Results) -> dict[str, object]:
    """Return what JSON has of the results."""
    return {
        "classes": classes(results, "level", "direction", "family"),
        "periods": periods(results, "level", "direction", "family"),
    }


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    families = classes(results, "level", "family")
    return {
        **{"params": results.params, "WAYS": WAYS, "DAYS": DAYS, "SAME_RATIO": SAME_RATIO},
        "right_by_level": {way: _right_by_level(results, way) for way in (_ASKED, _OURS)},
        "classes": classes(results, "level", "direction"),
        "families": families.pivot("way", index=["level", "family"], values="signed_right"),
        "threshold": Settings().signatures.min_expected_correlation,
        "expected_correlation": by_trust(results),
        "periods": periods(results, "level", "direction"),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"shares": draw_shares(shares(results)).write}


def _right_by_level(results: Results, way: str) -> str:
    """Return how often the class of a run with a signature is right, at each level."""
    rows = classes(results, "level").filter(way=way).select("level", "signed_right").rows()
    return ", ".join(f"{percent(share)} ({level})" for level, share in rows)


def classes(results: Results, *names: str) -> pl.DataFrame:
    """Return how often the class of a run is right, by way and what is named.

    run_count; right; signed_count: of them those of applications with a signature; signed_right; off: by how much the
    shares of classes are off, which is half of the sum of all differences.
    """
    is_right, has = pl.col("label").eq_missing(pl.col("true_label")), pl.col("has_signature")
    off = sum((pl.col("label").eq_missing(one).mean() - (pl.col("true_label") == one).mean()).abs() for one in _LABELS)
    return results.runs.group_by(*names, "way", maintain_order=True).agg(
        run_count=pl.len(),
        right=is_right.mean(),
        signed_count=has.sum(),
        signed_right=is_right.filter(has).mean(),
        off=off / 2,
    )


def periods(results: Results, *names: str) -> pl.DataFrame:
    """Return how often periods are right, by way and what is named; of ways that tell of them.

    run_count; said, periodic: the shares of runs that are said to be periodic, and that are; of_said, of_periodic: of
    either the share of which the right period is told.
    """
    is_said, is_periodic = pl.col("period_s").is_not_null(), pl.col("true_period_s").is_not_null()
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < SAME_RATIO).fill_null(value=False)
    told = results.runs.filter(is_said.any().over("way"))
    return told.group_by(*names, "way", maintain_order=True).agg(
        run_count=pl.len(),
        said=is_said.mean(),
        periodic=is_periodic.mean(),
        of_said=is_same.filter(is_said).mean(),
        of_periodic=is_same.filter(is_periodic).mean(),
    )


def shares(results: Results) -> pl.DataFrame:
    """Return the share of runs by level, way and class: of runs whose application has a signature, the truth first."""
    signed = results.runs.filter("has_signature")
    truth = signed.filter(way=_ASKED).with_columns(way=pl.lit(_TRUTH), label="true_label")
    told = pl.concat([truth, signed]).group_by("level", "way", "label", maintain_order=True).len()
    return told.with_columns(
        run_ratio=pl.col("len") / pl.col("len").sum().over("level", "way"),
        label=pl.col("label").cast(pl.Enum(_LABELS)),
    ).sort(pl.col("level").cast(pl.Enum(list(LEVELS))), pl.col("way").cast(pl.Enum([_TRUTH, *WAYS])), "label")


def by_trust(results: Results) -> pl.DataFrame:
    """Return how often inferred classes and periods are right, by the expected correlation of the signature."""
    is_said = pl.col("period_s").is_not_null()
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < SAME_RATIO).fill_null(value=False)
    lower = (pl.col("expected_correlation") * 10).floor().clip(0, 9) / 10
    return (
        results.runs.filter(way=_OURS)
        .group_by(lower=lower)
        .agg(
            run_count=pl.len(),
            right=pl.col("label").eq_missing(pl.col("true_label")).mean(),
            said=is_said.mean(),
            of_said=is_same.filter(is_said).mean(),
        )
        .sort("lower")
        .with_columns(upper=pl.col("lower") + 0.1)
    )


# ---- the figure


@picture((11.0, 3.6))
def draw_shares(figure: Figure, shares: pl.DataFrame) -> None:
    """Draw bars of each class and way, a panel a level.

    shares: level, way, label, run_ratio; the truth is a way, too.
    """
    ways, labels = (panels.in_order(shares, name) for name in ("way", "label"))
    width = 0.8 / len(ways)
    for axes, _, at_level in row_of_panels(figure, shares, "level", is_x_shared=False):
        for number, way in enumerate(ways):
            own = dict(at_level.filter(way=way).select("label", "run_ratio").iter_rows())
            places = np.arange(len(labels)) + (number - (len(ways) - 1) / 2) * width
            axes.bar(places, [own.get(label, 0.0) for label in labels], width, color=_COLOURS[number], label=way)
        axes.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=8)
    first = figure.axes[0]
    first.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    first.set_ylabel("runs", fontsize=9)
    legend_below(figure)
