"""What the study of attribution shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from iosig.studies.attribution import hurting
from iosig.studies.attribution.figures import draw_ways
from iosig.studies.attribution.running import LEAST_BYTES, LEAST_BYTES_PER_S, Results
from iosig.studies.attribution.ways import LIKELY, WAYS
from iosig.studies.pages import Block, Figure, Table, percent
from iosig.studies.sites import DAYS, FAMILIES, LEVELS

_OURS = "attribution"
#: the family in which others cost nothing
_FREELY = "fair"


def document(results: Results) -> dict[str, list[dict[str, object]]]:
    """Return the results as plain values."""
    return {
        "sites": results.sites.to_dicts(),
        "jobs": results.jobs.to_dicts(),
        "hurt": hurting.summed(results.bursts, "family", "level", "seed").to_dicts(),
    }


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "What each way explains", way_table(results)
    yield "Attribution by family", family_table(results)
    yield "Who was hurt", hurt_table(results, "level")
    yield "Who was hurt, by family", hurt_table(results, "family")


def summed(results: Results, *names: str) -> pl.DataFrame:
    """Return shares of all sites of each level and way, and of what else is named: explained, wrong, errors, tops."""
    key = ["level", "way", *names]
    sums = pl.exclude("direction", *({"family", "seed"} - set(names)))
    sites = results.sites.select(*key, sums.exclude(key)).group_by(key, maintain_order=True).sum()
    given = pl.col("known_given_bytes") + pl.col("other_given_bytes")
    right = pl.col("known_right_bytes") + pl.col("other_right_bytes")
    error = (pl.col("given_bytes") / pl.col("moved_bytes") - 1).abs()
    errors = results.jobs.group_by(key).agg(error=error.median(), near=(error < 0.2).mean(), job_count=pl.len())
    return sites.select(
        *key,
        known=pl.col("known_bytes") / pl.col("measured_bytes"),
        logged=pl.col("job_bytes") / pl.col("measured_bytes"),
        explained=pl.col("known_right_bytes") / pl.col("known_bytes"),
        wrong=1 - right / given,
        known_top=pl.col("known_hits") / pl.col("known_asked"),
        top=pl.col("hits") / pl.col("asked"),
        minute_count=pl.col("asked").cast(pl.Int64),
    ).join(errors, on=key, how="left", maintain_order="left")


def way_table(results: Results) -> Table:
    """Return what each way comes to at each level."""
    return Table.of(
        summed(results),
        ("level", "{level}"),
        ("way", "{way}"),
        ("explained of known bytes", "{explained:%}"),
        ("wrong, of what is given", "{wrong:%}"),
        ("median error a job", "{error:%}"),
        ("jobs within 20 %", "{near:%}"),
        ("top 3, known", "{known_top:%}"),
        ("top 3, all", "{top:%}"),
    )


def family_table(results: Results) -> Table:
    """Return what attribution comes to in each family."""
    return Table.of(
        _ours(results, "family"),
        ("level", "{level}"),
        ("family", "{family}"),
        ("known, of all bytes", "{known:%}"),
        ("explained of known bytes", "{explained:%}"),
        ("wrong, of what is given", "{wrong:%}"),
        ("median error a job", "{error:%}"),
        ("jobs within 20 %", "{near:%}"),
        ("top 3, known", "{known_top:%}"),
        ("top 3 of `who`, all", "{likely_top:%}"),
    )


def seed_table(results: Results) -> Table:
    """Return what attribution comes to at each seed, over all families."""
    return Table.of(
        _ours(results, "seed"),
        ("level", "{level}"),
        ("seed", "{seed}"),
        ("known, of all bytes", "{known:%}"),
        ("explained of known bytes", "{explained:%}"),
        ("wrong, of what is given", "{wrong:%}"),
        ("top 3, known", "{known_top:%}"),
        ("top 3 of `who`, all", "{likely_top:%}"),
        ("minutes", "{minute_count:,}"),
    )


def _ours(results: Results, name: str) -> pl.DataFrame:
    """Return what attribution comes to by level and a name, and whom `iosig who` has among the first three."""
    rows = summed(results, name)
    likely = rows.filter(pl.col("way") == LIKELY).select("level", name, likely_top="top")
    return rows.filter(pl.col("way") == _OURS).join(likely, on=["level", name], how="left", maintain_order="left")


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# How much of the traffic is given to whom it belongs"
    yield (
        "Polls know how much flowed, the job log who was there, signatures what each of them does. Here sites are "
        "simulated whose every transfer is known; signatures are found in the traffic as a night finds them, the "
        "traffic is given to jobs by several ways, and that is held against the truth, job by job and minute by minute."
    )
    yield Table(("way", "what it does"), [(name, words) for name, (words, _) in WAYS.items()])
    yield _in_short(results)
    yield Figure("What is explained over what is given wrongly", "ways", partial(draw_ways, summed(results, "family")))
    yield way_table(results)
    yield _words(results)
    if results.params.seed_count > 1:
        yield "## By seed"
        yield seed_table(results)
    yield "## By family"
    yield Table(("family", "what it is"), [(name, words) for name, (words, _) in FAMILIES.items()])
    yield family_table(results)
    yield _limits(results)
    yield "## Who was hurt"
    yield _hurt_words(results)
    yield hurt_table(results, "level")
    yield hurt_table(results, "family")
    yield _hurt_limits(results)


def _in_short(results: Results) -> str:
    explained, wrong, top = (_by_level(results, name) for name in ("explained", "wrong", "known_top"))
    likely, equal, nodes = (_by_level(results, "top", way) for way in (LIKELY, "equal shares", "by nodes"))
    return (
        f"Of the known bytes attribution explains {explained}. Of what it gives, {wrong} are wrong. In minutes of more "
        f"than {LEAST_BYTES_PER_S / 1e9:.0f} GB/s in which a job with a signature moved most, that job is among the "
        f"first three by what is given in {top} of them. `iosig who` ranks by what is likely besides: whoever moved "
        f"most, with a signature or without, is among its first three in {likely} of all minutes of more than "
        f"{LEAST_BYTES_PER_S / 1e9:.0f} GB/s; among those of equal shares in {equal}, by nodes in {nodes}."
    )


def _by_level(results: Results, column: str, way: str = _OURS) -> str:
    """Return what a way comes to at each level."""
    rows = summed(results).filter(pl.col("way") == way)
    return ", ".join(f"{percent(row[column])} ({row['level']})" for row in rows.iter_rows(named=True))


def _words(results: Results) -> str:
    count = results.params.seed_count
    levels = ", ".join(f"{level} {times:g}" for level, times in LEVELS.items())
    rows = summed(results).filter(pl.col("way") == _OURS)
    minutes = ", ".join(f"{number:,}" for number in rows["minute_count"])
    sites = "site" if count == 1 else "sites"
    return (
        f"{count} {sites} of each family and level, of {DAYS:g} days each, both directions. A level is others' "
        f"activity in multiples of the usual: {levels}. Jobs move {_by_level(results, 'logged')} of all bytes. Known "
        "are those of applications for which a signature was found in that direction: "
        f"{_by_level(results, 'known')}. Explained: what a way gives to a known job in a minute, up to what that "
        "moved in it. Wrong: what is given beyond that. Errors are of the whole job, of those "
        f"that moved {LEAST_BYTES / 1e9:.0f} GB or more. Top 3: in how many minutes of more than "
        f"{LEAST_BYTES_PER_S / 1e9:.0f} GB/s ({minutes}) the three that are given most hold the job that moved most: "
        "where that is a known one, and all. Jobs that are given the same are as likely to be named."
    )


def _limits(results: Results) -> str:
    return (
        "What has no signature is given nothing, and where that moved most, attribution names others or nobody. "
        f"Sharing what is left among these jobs names them more often, but "
        f"{_by_level(results, 'wrong', 'rest shared')} of what is given are wrong then: so the night leaves it, and "
        "`iosig who` says who is likely to have moved it. Where others move much more than the known "
        "jobs, signatures themselves are poor: bursts that are too doubtful are given nothing, of the others a "
        "certainty says so, and who wants to be sure asks for it."
    )


# ---- who was hurt


def hurt_table(results: Results, name: str) -> Table:
    """Return how good what is said of bursts is, by level or by family."""
    return Table.of(
        hurting.summed(results.bursts, name),
        (name, f"{{{name}}}"),
        ("bursts found", "{burst_count:,}"),
        ("said to be hurt", "{hurt_count:,}"),
        (f"lost more than {hurting.HURT_S:g} s", "{right:%}"),
        (f"lost {hurting.CLEAR_S:g} s or more", "{clear_count:,}"),
        ("said of these", "{found:%}"),
        ("of all seconds lost", "{of_lost:%}"),
        ("in the range", "{held:%}"),
        ("of the hurt", "{held_hurt:%}"),
        ("named was there", "{there:%}"),
    )


def _hurt_words(results: Results) -> str:
    one = hurting.summed(results.bursts.with_columns(all=pl.lit("all")), "all").row(0, named=True)
    return (
        "Of each burst that was found in the traffic it is said how much longer it took than alone, with a range, and "
        "whether it was hurt (`slowdowns`); the truth is how long storage served it, less what it would have taken "
        f"with nobody else there, at its run's own pace. Of {one['hurt_count']:,} bursts that are said to be hurt, "
        f"{percent(one['right'])} lost more than {hurting.HURT_S:g} s to others. Of {one['clear_count']:,} that lost "
        f"{hurting.CLEAR_S:g} s or more, {percent(one['found'])} are said to be hurt, and all that are have "
        f"{percent(one['of_lost'])} of all seconds that were lost. The range holds {percent(one['held'])} of all "
        f"bursts, {percent(one['held_hurt'])} of those that are hurt. Where another job is named, it moved bytes "
        f"meanwhile in {percent(one['there'])} of the cases."
    )


def _hurt_limits(results: Results) -> str:
    by_family = dict(hurting.summed(results.bursts, "family").select("family", "hurt_count").iter_rows())
    freely = by_family.get(_FREELY, 0)
    told = f"{freely:,} bursts are" if freely else "nobody is"
    return (
        "How much crowding slows is learnt from all runs of a site's two days, a night's from those of its day: with "
        "fewer runs fewer are said to be hurt. What slows a transfer here is how many others go on; how many bytes "
        "these move, which is what traffic shows, says that roughly, and a range that holds too few of the hurt is the "
        f"price. In the family in which others cost nothing ({_FREELY}), {told} said to be hurt."
    )
