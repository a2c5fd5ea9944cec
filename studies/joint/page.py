"""What the study of joint signatures shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports import style
from iosig.reports.panels import picture
from iosig.studies.drawing import legend_below, row_of_panels
from iosig.studies.joint.real import APPLICATION_COUNT, RUN_COUNT
from iosig.studies.joint.running import CHOSEN, JOINT, ORACLE, PACED, PLAIN, USUAL, Results
from iosig.studies.joint.sites import FAMILIES, LEVELS, PEAK_BYTES_PER_S
from iosig.studies.pages import Draw
from iosig.studies.signatures.sites import STUDIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: distances are to be less than this share of the best plain method's
_WANTED = 0.5
_BIN_COUNT = 5
#: by so much an answer is further from the truth than another one
FURTHER = 0.01
#: columns of distances, each with its words, colour, mark and size
_MARKS = (
    ("plain", "best plain method", style.VERMILION, "s", 6),
    ("chosen", "found together", style.BLUE, "o", 6),
    ("oracle", "others' bytes known", style.GREEN, "|", 10),
)


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    distance = distances(results)
    is_logged = pl.col("family").is_in(_logged())
    logged = (
        distance.filter(is_logged)
        .group_by("level", maintain_order=True)
        .agg(
            mean=pl.col(CHOSEN).mean() / pl.col("plain").mean(), reached=(pl.col("share") < _WANTED).sum(), of=pl.len()
        )
    )
    days = results.days
    return {
        **{"params": results.params, "FAMILIES": FAMILIES, "LEVELS": LEVELS, "PLAIN": PLAIN, "FURTHER": FURTHER},
        **{"PEAK_BYTES_PER_S": PEAK_BYTES_PER_S, "APPLICATION_COUNT": APPLICATION_COUNT, "RUN_COUNT": RUN_COUNT},
        "logged": logged.to_dicts(),
        "further": distance.filter(~is_logged).select((pl.col(CHOSEN) - pl.col(USUAL)).max()).item(),
        "distances": distance,
        "budget": budget(results),
        "ways": ways(results),
        "expected_correlation": expected_correlation(results),
        "days": by_size(results) if days.height else days,
        "draw_count": days["seed"].n_unique() if days.height else 0,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"distances": draw_distances(distances(results)).write}


def _logged() -> list[str]:
    return [name for name, family in FAMILIES.items() if family.is_logged]


def distances(results: Results) -> pl.DataFrame:
    """Return mean distances (1 - correlation) of each family and level: those of the best plain method, and of ours.

    The best plain method is that with the least mean distance there. share: of its distance, what is published has;
    least_share, most_share: site by site. below_count, of site_count: on so many sites half of it is less than what
    known gaps leave. better_ratio: of how many applications the joint answer stands; explained_ratio: of the foreign
    traffic in samples, in the mean.
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
        seed_distances(results)
        .group_by(key)
        .agg(
            least_share=pl.col("share").min(),
            most_share=pl.col("share").max(),
            below_count=(pl.col(PACED) > _WANTED * pl.col("plain")).sum(),
            site_count=pl.len(),
        )
    )
    own = {
        way: mean.filter(way=way).select(*key, pl.col("distance").alias(way))
        for way in (USUAL, JOINT, CHOSEN, ORACLE, PACED)
    }
    told = mean.filter(way=JOINT).select(*key, "better_ratio", "explained_ratio")
    found = plain
    for other in (*own.values(), told, by_seed):
        found = found.join(other, on=key, how="left", maintain_order="left")
    return found.with_columns(share=pl.col(CHOSEN) / pl.col("plain"))


def seed_distances(results: Results) -> pl.DataFrame:
    """Return distances on each site: of the best plain method there, of what is published, and with known gaps."""
    mean = results.answers.group_by("family", "level", "seed", "way", maintain_order=True).agg(
        distance=1.0 - pl.col("correlation").mean()
    )
    found = mean.group_by("family", "level", "seed", maintain_order=True).agg(
        pl.col("distance").filter(pl.col("way").is_in(PLAIN)).min().alias("plain"),
        *(pl.col("distance").filter(pl.col("way") == way).first().alias(way) for way in (CHOSEN, PACED)),
    )
    return found.with_columns(share=pl.col(CHOSEN) / pl.col("plain"))


def budget(results: Results) -> pl.DataFrame:
    """Return what distance is left at each level, the more is known of what makes it up, as shares of the plain one."""
    found = distances(results).filter(pl.col("family").is_in(_logged()))
    rows = found.group_by("level", maintain_order=True).agg(
        pl.col("plain").mean(),
        *(pl.col(way).mean() / pl.col("plain").mean() for way in (JOINT, CHOSEN, ORACLE, PACED)),
        below=pl.format("{} ({} of {})", "family", "below_count", "site_count")
        .filter(pl.col("below_count") > 0)
        .str.join(", "),
    )
    return rows.with_columns(below=pl.when(pl.col("below") == "").then(pl.lit("none")).otherwise("below"))


def ways(results: Results) -> pl.DataFrame:
    """Return what every way comes to at each level, in families whose others are logged."""
    rows = (
        results.answers.filter(pl.col("family").is_in(_logged()))
        .group_by("level", "way", maintain_order=True)
        .agg(
            pl.col("cross_correlation", "correlation", "volume_ratio").mean(),
            studied=pl.col("correlation").filter(pl.col("application").is_in([one.name for one in STUDIED])).mean(),
        )
    )
    return rows


def expected_correlation(results: Results) -> pl.DataFrame:
    """Return what is told of joint answers that stand beside what was found, in bins of expected correlation."""
    rows = results.answers.filter(pl.col("way") == JOINT, pl.col("is_better")).drop_nulls("expected_correlation")
    edges = np.linspace(0.0, 1.0, _BIN_COUNT + 1)
    binned = (
        rows.with_columns(
            bin=(pl.col("expected_correlation") * _BIN_COUNT).floor().clip(0, _BIN_COUNT - 1).cast(pl.Int64)
        )
        .group_by("bin")
        .agg(told=pl.col("expected_correlation").mean(), found=pl.col("correlation").mean(), count=pl.len())
        .sort("bin")
        .with_columns(
            words=pl.col("bin").map_elements(lambda one: f"{edges[one]:.1f} to {edges[one + 1]:.1f}", pl.String)
        )
    )
    return binned


def by_size(results: Results) -> pl.DataFrame:
    """Return what comes of a real day, by how large the bursts are, reads and writes apart."""
    further = pl.col("chosen") - pl.col("usual")
    rows = results.days.group_by("size", "direction", maintain_order=True).agg(
        pl.col("unlogged_ratio", "usual", "joint", "chosen", "is_better", "explained_ratio").mean(),
        further_count=(further > FURTHER).sum(),
        count=pl.len(),
        most=further.max(),
    )
    return rows


# ---- the figure


@picture((11.0, 3.9))
def draw_distances(figure: Figure, distances: pl.DataFrame) -> None:
    """Draw the distances of each family and level.

    distances: family, level, plain, chosen, oracle.
    """
    for axes, _, rows in row_of_panels(figure, distances, "level", is_x_shared=False):
        places = list(range(rows.height))[::-1]
        axes.hlines(places, rows["chosen"].to_numpy(), rows["plain"].to_numpy(), color=style.GREY, lw=1.5)
        for column, words, colour, mark, size in _MARKS:
            axes.plot(rows[column].to_numpy(), places, mark, color=colour, ms=size, label=words)
        axes.set_yticks(places, rows["family"].to_list())
        axes.set(xlim=(0, None))
        axes.set_xlabel("distance to the truth (1 - correlation)", fontsize=9)
    legend_below(figure)
