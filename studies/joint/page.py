"""Compute the template variables and figures of the page `docs/joint-study.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import style
from iosig.reports.panels import picture
from iosig.studies.drawing import add_legend_below, draw_panels
from iosig.studies.joint.real import APPLICATION_COUNT, RUN_COUNT
from iosig.studies.joint.running import CHOSEN, JOINT, ORACLE, PACED, PLAIN, USUAL, Results
from iosig.studies.joint.sites import FAMILIES, LEVELS, PEAK_BYTES_PER_S
from iosig.studies.pages import Draw
from iosig.studies.signatures.sites import STUDIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: target of the distance of joint signatures, relative to the best separate method
_WANTED = 0.5
_BIN_COUNT = 5
#: minimum increase of the distance that counts as worse
MIN_DISTANCE_INCREASE = 0.01
#: column, label, color, marker and marker size
_MARKS = (
    ("plain", "best plain method", style.VERMILION, "s", 6),
    ("chosen", "found together", style.BLUE, "o", 6),
    ("oracle", "interfering bytes known", style.GREEN, "|", 10),
)


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    distance = compute_distances(results)
    is_logged = pl.col("family").is_in(_list_families_in_log())
    logged = (
        distance.filter(is_logged)
        .group_by("level", maintain_order=True)
        .agg(
            mean=pl.col(CHOSEN).mean() / pl.col("plain").mean(), reached=(pl.col("share") < _WANTED).sum(), of=pl.len()
        )
    )
    days = results.days
    return {
        **{"params": results.params, "FAMILIES": FAMILIES, "LEVELS": LEVELS, "PLAIN": PLAIN},
        **{"PEAK_BYTES_PER_S": PEAK_BYTES_PER_S, "APPLICATION_COUNT": APPLICATION_COUNT, "RUN_COUNT": RUN_COUNT},
        "MIN_DISTANCE_INCREASE": MIN_DISTANCE_INCREASE,
        "logged": logged,
        "further": distance.filter(~is_logged).select((pl.col(CHOSEN) - pl.col(USUAL)).max()).item(),
        "distances": distance,
        "budget": compute_error_budget(results),
        "ways": summarize_ways(results),
        "expected_correlation": calibrate_correlation(results),
        "days": summarize_real_day(results) if days.height else days,
        "draw_count": days["seed"].n_unique() if days.height else 0,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {"distances": draw_distances(compute_distances(results)).write}


def _list_families_in_log() -> list[str]:
    return [name for name, family in FAMILIES.items() if family.is_logged]


def compute_distances(results: Results) -> pl.DataFrame:
    """Return mean distances (1 - correlation) of the best separate method and of joint extraction, by family and level.

    The best separate method is the one with the smallest mean distance. share: published distance relative to it;
    least_share, most_share: range over sites. below_count, of site_count: sites where half of its distance is below
    what exact gaps leave. better_ratio: fraction of accepted joint signatures. explained_ratio: mean explained fraction
    of the background.
    """
    key = ["family", "level"]
    mean = results.answers.group_by(*key, "way", maintain_order=True).agg(
        distance=1.0 - pl.col("correlation").mean(),
        better_ratio=pl.col("is_better").mean(),
        explained_ratio=pl.col("explained_ratio").mean(),
    )
    plain = (
        mean.filter(pl.col("way").is_in(PLAIN))
        .group_by(key, maintain_order=True)
        .agg(best=pl.col("way").sort_by("distance").first(), plain=pl.col("distance").min())
    )
    by_seed = (
        compute_site_distances(results)
        .group_by(key)
        .agg(
            least_share=pl.col("share").min(),
            most_share=pl.col("share").max(),
            below_count=(pl.col(PACED) > _WANTED * pl.col("plain")).sum(),
            site_count=pl.len(),
        )
    )
    by_way = {
        way: mean.filter(way=way).select(*key, pl.col("distance").alias(way))
        for way in (USUAL, JOINT, CHOSEN, ORACLE, PACED)
    }
    joint = mean.filter(way=JOINT).select(*key, "better_ratio", "explained_ratio")
    result = plain
    for frame in (*by_way.values(), joint, by_seed):
        result = result.join(frame, on=key, how="left", maintain_order="left")
    return result.with_columns(share=pl.col(CHOSEN) / pl.col("plain"))


def compute_site_distances(results: Results) -> pl.DataFrame:
    """Return the distances of the best separate method, the published signatures, and exact gaps, for each site."""
    mean = results.answers.group_by("family", "level", "seed", "way", maintain_order=True).agg(
        distance=1.0 - pl.col("correlation").mean()
    )
    result = mean.group_by("family", "level", "seed", maintain_order=True).agg(
        pl.col("distance").filter(pl.col("way").is_in(PLAIN)).min().alias("plain"),
        *(pl.col("distance").filter(pl.col("way") == way).first().alias(way) for way in (CHOSEN, PACED)),
    )
    return result.with_columns(share=pl.col(CHOSEN) / pl.col("plain"))


def compute_error_budget(results: Results) -> pl.DataFrame:
    """Return the distance by level, relative to the separate method, as more and more causes of error are removed."""
    distances = compute_distances(results).filter(pl.col("family").is_in(_list_families_in_log()))
    rows = distances.group_by("level", maintain_order=True).agg(
        pl.col("plain").mean(),
        *(pl.col(way).mean() / pl.col("plain").mean() for way in (JOINT, CHOSEN, ORACLE, PACED)),
        below=pl.format("{} ({} of {})", "family", "below_count", "site_count")
        .filter(pl.col("below_count") > 0)
        .str.join(", "),
    )
    return rows.with_columns(below=pl.when(pl.col("below") == "").then(pl.lit("none")).otherwise("below"))


def summarize_ways(results: Results) -> pl.DataFrame:
    """Return mean scores by level and way, in families with logged background traffic."""
    is_studied = pl.col("application").is_in([application.name for application in STUDIED])
    return (
        results.answers.filter(pl.col("family").is_in(_list_families_in_log()))
        .group_by("level", "way", maintain_order=True)
        .agg(
            pl.col("cross_correlation", "correlation", "volume_ratio").mean(),
            studied=pl.col("correlation").filter(is_studied).mean(),
        )
    )


def calibrate_correlation(results: Results) -> pl.DataFrame:
    """Compare expected and actual correlations of accepted joint signatures, in bins."""
    rows = results.answers.filter(pl.col("way") == JOINT, pl.col("is_better")).drop_nulls("expected_correlation")
    lower = (pl.col("expected_correlation") * _BIN_COUNT).floor().clip(0, _BIN_COUNT - 1) / _BIN_COUNT
    return (
        rows.group_by(lower=lower)
        .agg(pl.col("expected_correlation", "correlation").mean(), count=pl.len())
        .sort("lower")
        .with_columns(upper=pl.col("lower") + 1 / _BIN_COUNT)
    )


def summarize_real_day(results: Results) -> pl.DataFrame:
    """Summarize the measured day by burst size and direction."""
    distance_increase = pl.col("chosen") - pl.col("usual")
    return results.days.group_by("size", "direction", maintain_order=True).agg(
        pl.col("unlogged_ratio", "usual", "joint", "chosen", "is_better", "explained_ratio").mean(),
        further_count=(distance_increase > MIN_DISTANCE_INCREASE).sum(),
        count=pl.len(),
        most=distance_increase.max(),
    )


# ---- the figure


@picture((11.0, 3.9))
def draw_distances(figure: Figure, distances: pl.DataFrame) -> None:
    """Plot the distances by family, one panel per level.

    distances: family, level, plain, chosen, oracle.
    """
    for axes, _, rows in draw_panels(figure, distances, "level", is_x_shared=False):
        places = list(range(rows.height))[::-1]
        axes.hlines(places, rows["chosen"].to_numpy(), rows["plain"].to_numpy(), color=style.GRAY, lw=1.5)
        for column, words, color, mark, size in _MARKS:
            axes.plot(rows[column].to_numpy(), places, mark, color=color, ms=size, label=words)
        axes.set_yticks(places, rows["family"].to_list())
        axes.set(xlim=(0, None))
        axes.set_xlabel("distance to the truth (1 - correlation)", fontsize=9)
    add_legend_below(figure)
