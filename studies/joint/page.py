"""What the study of joint signatures shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl

from iosig.studies.joint.figures import draw_distances
from iosig.studies.joint.real import APPLICATION_COUNT, RUN_COUNT
from iosig.studies.joint.running import CHOSEN, JOINT, ORACLE, PACED, PLAIN, USUAL, Results
from iosig.studies.joint.sites import FAMILIES, LEVELS, PEAK_BYTES_PER_S
from iosig.studies.pages import Block, Figure, Table, percent
from iosig.studies.signatures.sites import STUDIED

#: distances are to be less than this share of the best plain method's
_WANTED = 0.5
_BIN_COUNT = 5
#: by so much an answer is further from the truth than another one
_FURTHER = 0.01


def document(results: Results) -> dict[str, list[dict[str, object]]]:
    """Return the results as plain values."""
    return {"answers": results.answers.to_dicts(), "days": results.days.to_dicts()}


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "Distances to the truth", distance_table(results)
    yield "Where the rest comes from", budget_table(results)
    yield "Every way", way_table(results)
    if results.days.height:
        yield "A real day", day_table(results)


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


def distance_table(results: Results) -> Table:
    """Return the distances of each family and level."""
    return Table.of(
        distances(results),
        ("family", "{family}"),
        ("level", "{level}"),
        ("best plain method", "{best}, {plain:.3f}"),
        ("usual", "{usual:.3f}"),
        ("joint", "{joint:.3f}"),
        ("chosen", "{chosen:.3f}"),
        ("of the best plain one's", "{share:%}"),
        ("site by site", "{least_share:%} to {most_share:%}"),
        ("others' bytes known", "{oracle:.3f}"),
        ("gaps known", "{paced:.3f}"),
        ("joint stands", "{better_ratio:%}"),
        ("foreign explained", "{explained_ratio:%}"),
    )


def budget_table(results: Results) -> Table:
    """Return what distance is left at each level, the more is known of what makes it up, as shares of the plain one."""
    found = distances(results).filter(pl.col("family").is_in(_logged()))
    rows = found.group_by("level", maintain_order=True).agg(
        pl.col("plain").mean(),
        *(pl.col(way).mean() / pl.col("plain").mean() for way in (JOINT, CHOSEN, ORACLE, PACED)),
        below=pl.format("{} ({} of {})", "family", "below_count", "site_count")
        .filter(pl.col("below_count") > 0)
        .str.join(", "),
    )
    return Table.of(
        rows.with_columns(below=pl.when(pl.col("below") == "").then(pl.lit("none")).otherwise("below")),
        ("level", "{level}"),
        ("best plain method", "{plain:.3f}"),
        ("published", "{chosen:%}"),
        ("every joint answer", "{joint:%}"),
        ("others' bytes known", "{oracle:%}"),
        ("gaps known", "{paced:%}"),
        ("half is less than that in", "{below}"),
    )


def way_table(results: Results) -> Table:
    """Return what every way comes to at each level, in families whose others are logged."""
    rows = (
        results.answers.filter(pl.col("family").is_in(_logged()))
        .group_by("level", "way", maintain_order=True)
        .agg(
            pl.col("cross_correlation", "correlation", "volume_ratio").mean(),
            studied=pl.col("correlation").filter(pl.col("application").is_in([one.name for one in STUDIED])).mean(),
        )
    )
    return Table.of(
        rows,
        ("level", "{level}"),
        ("way", "{way}"),
        ("cross-correlation/correlation", "{cross_correlation:.2f}/{correlation:.2f}"),
        ("volume to the true one", "{volume_ratio:.2f}"),
        ("correlation of the five", "{studied:.2f}"),
    )


def trust_table(results: Results) -> Table:
    """Return what is told of joint answers that stand beside what was found, in bins of trust."""
    rows = results.answers.filter(pl.col("way") == JOINT, pl.col("is_better")).drop_nulls("trust")
    edges = np.linspace(0.0, 1.0, _BIN_COUNT + 1)
    binned = (
        rows.with_columns(bin=(pl.col("trust") * _BIN_COUNT).floor().clip(0, _BIN_COUNT - 1).cast(pl.Int64))
        .group_by("bin")
        .agg(told=pl.col("trust").mean(), found=pl.col("correlation").mean(), count=pl.len())
        .sort("bin")
        .with_columns(
            words=pl.col("bin").map_elements(lambda one: f"{edges[one]:.1f} to {edges[one + 1]:.1f}", pl.String)
        )
    )
    return Table.of(
        binned, ("trust", "{words}"), ("told", "{told:.2f}"), ("found", "{found:.2f}"), ("signatures", "{count:,}")
    )


def day_table(results: Results) -> Table:
    """Return what comes of a real day, by how large the bursts are, reads and writes apart."""
    further = pl.col("chosen") - pl.col("usual")
    rows = results.days.group_by("size", "direction", maintain_order=True).agg(
        pl.col("unlogged_ratio", "usual", "joint", "chosen", "is_better", "explained_ratio").mean(),
        further_count=(further > _FURTHER).sum(),
        count=pl.len(),
        most=further.max(),
    )
    return Table.of(
        rows,
        ("bursts", "{size}"),
        ("direction", "{direction}"),
        ("in no log", "{unlogged_ratio:%}"),
        ("usual", "{usual:.3f}"),
        ("joint", "{joint:.3f}"),
        ("chosen", "{chosen:.3f}"),
        ("joint stands", "{is_better:%}"),
        ("foreign explained", "{explained_ratio:%}"),
        ("further than usual", "{further_count} of {count}"),
        ("by at most", "{most:.3f}"),
    )


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# Signatures found together"
    yield (
        "Most of what makes a sample noisy is other jobs, and most of these have signatures. Here sites are simulated "
        "on which that is so: what all applications do is fitted to the traffic at once, from when their runs were "
        "there; of each sample what the others' runs are given is taken off, and what they cost it in time; then its "
        "signature is found anew. "
        "What comes of it is held against what each application does alone."
    )
    yield _in_short(results)
    yield Figure("Distances to the truth", "distances", partial(draw_distances, distances(results)))
    yield distance_table(results)
    yield _words(results)
    yield "## Where the rest comes from"
    yield (
        "Distances in the mean of the families whose others are logged, as shares of the best plain method's: what is "
        "published; what is left if every joint answer stood; if exactly the others' bytes were taken off and it were "
        "known how many of them were at work; and if the gaps between the bursts of an application's whole runs were "
        "known exactly, and its bursts were as they are alone. In the last one no traffic is left at all: it is by "
        "how much the mean pace of these ten runs differs from that of the application, which no method can tell from "
        "them. Where half of the plain distance is less than that it cannot be asked for: behind each family of which "
        "there are such sites, how many of its sites they are."
    )
    yield budget_table(results)
    yield "## The families"
    yield Table(("family", "what it is"), [(name, one.doc) for name, one in FAMILIES.items()])
    yield "## Every way"
    yield way_table(results)
    yield "## Trust"
    yield (
        "The trust that is told of joint answers that stand is that of the judge of all signatures, who hears the "
        "cleaned samples. Beside it the correlation with the truth that was found:"
    )
    yield trust_table(results)
    if results.days.height:
        yield "## A real day"
        yield _day_words(results)
        yield day_table(results)


def _in_short(results: Results) -> str:
    found = distances(results).with_columns(is_logged=pl.col("family").is_in(_logged()))
    told = (
        found.filter("is_logged")
        .group_by("level", maintain_order=True)
        .agg(
            mean=pl.col(CHOSEN).mean() / pl.col("plain").mean(), reached=(pl.col("share") < _WANTED).sum(), of=pl.len()
        )
    )
    lines = [
        f"{row['level']}: {percent(row['mean'])} of the best plain method's in the mean of the families, less than "
        f"half of it in {row['reached']} of {row['of']}"
        for row in told.iter_rows(named=True)
    ]
    further = found.filter(~pl.col("is_logged")).select((pl.col(CHOSEN) - pl.col(USUAL)).max()).item()
    return (
        "Distance is 1 - correlation: what is left to the truth, not what was gained. Where the others are in the job "
        f"log, the distance of what is published with `joint` is at {'; '.join(lines)}. Where none of them is, it is "
        f"{further:.3f} further than the usual answers at most."
    )


def _logged() -> list[str]:
    return [name for name, one in FAMILIES.items() if one.is_logged]


def _day_words(results: Results) -> str:
    draws = results.days["seed"].n_unique()
    return (
        "A scratch file system of NERSC's Edison (2018-02-09, polled every 5 s). Its log names eight runs on it, which "
        "had it nearly for themselves: what flowed meanwhile are bursts of which every step is known. "
        f"{APPLICATION_COUNT} applications a direction repeat them, three to seven times at gaps of their own, "
        f"{RUN_COUNT} runs each, which differ by 0.3 % in their gaps and begin at drawn times; bursts are as large as "
        "they were, or less. What flowed that day flows still, and is in no log: *in no log* is its share of all. "
        f"Nobody slows anybody. Distances are those to the exact series, in the mean of {draws} draws; *further than "
        f"usual* are published answers that are so by more than {_FURTHER:g}."
    )


def _words(results: Results) -> str:
    count = results.params.seed_count
    sites = "site" if count == 1 else "sites"
    levels = ", ".join(f"{level} {ratio:g}" for level, ratio in LEVELS.items())
    return (
        f"{count} {sites} of each family and level, of twenty-five applications with ten runs each: the five of the "
        "study of signatures, and twenty drawn ones; all count alike. A level is the mean of all traffic over "
        f"{PEAK_BYTES_PER_S / 1e9:g} GB/s, the height of most bursts: {levels}. `usual` is what is published if "
        "nothing is said, `joint` every joint answer, `chosen` the joint ones that stand and else the usual ones; the "
        "best plain method is that with the least mean distance of "
        f"{', '.join(PLAIN)}, known afterwards. *Site by site*: the least and the most of such "
        "shares, each of the method that is best on that site. A method that gives no signature counts as correlation "
        "0. *Others' bytes known* is the same estimator of samples from which exactly the others' bytes were taken, "
        "where it is known how many others were at work and what each costs. *Gaps known*: the application's bursts as "
        "they are alone, its gaps the means of those of its whole runs, as they were. A joint answer stands where six "
        "tenths of the foreign traffic in its samples are explained, its trust suffices, and runs that it was not made "
        "of are likelier with it than with the usual answer of the same ones, by the more the more that is trusted. "
        "The method's numbers, and the rule of when an answer stands, were chosen on sites of seeds 1 to 6."
    )
