"""What the study shows: its page, a figure, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from iosig.settings.model import Settings
from iosig.studies.pages import Block, Figure, Table, percent
from iosig.studies.population.figures import draw_shares
from iosig.studies.population.running import Results
from iosig.studies.population.ways import WAYS
from iosig.studies.sites import DAYS, LEVELS

_TRUTH = "truth"
#: classes in the order of PEARC'18's tables
_LABELS = ("UNIFORM", "OTHER", "HILL", "CANYON", "START", "END", "NO_USAGE")
#: two periods that differ by less are the same, in shares of the true one
_SAME = 0.1
_ASKED = "traffic"
_OURS = "signature"


def document(results: Results) -> dict[str, list[dict[str, object]]]:
    """Return the results as plain values."""
    return {
        "classes": classes(results, "level", "direction", "family").to_dicts(),
        "periods": periods(results, "level", "direction", "family").to_dicts(),
    }


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "Classes", class_table(results)
    yield "Periods", period_table(results)


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
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < _SAME).fill_null(value=False)
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


def class_table(results: Results) -> Table:
    """Return how often the class of a run is right."""
    return Table.of(
        classes(results, "level", "direction"),
        ("level", "{level}"),
        ("direction", "{direction}"),
        ("way", "{way}"),
        ("runs", "{run_count:,}"),
        ("right", "{right:%}"),
        ("shares off by", "{off:%}"),
        ("with a signature", "{signed_count:,}"),
        ("right, of these", "{signed_right:%}"),
    )


def period_table(results: Results) -> Table:
    """Return how often periods are right."""
    return Table.of(
        periods(results, "level", "direction"),
        ("level", "{level}"),
        ("direction", "{direction}"),
        ("way", "{way}"),
        ("runs", "{run_count:,}"),
        ("said to be periodic", "{said:%}"),
        ("periodic", "{periodic:%}"),
        ("right, of those said", "{of_said:%}"),
        ("told right, of the periodic", "{of_periodic:%}"),
    )


def family_table(results: Results) -> Table:
    """Return how often the class of a run with a signature is right, family by family."""
    rows = classes(results, "level", "family").pivot("way", index=["level", "family"], values="signed_right")
    return Table.of(rows, ("level", "{level}"), ("family", "{family}"), *((way, f"{{{way}:%}}") for way in WAYS))


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# How right classes and periods of runs are"
    yield (
        "PEARC'18 tells when in its run a job does its I/O, and how often, from what servers counted for it alone. "
        "Where they count for nobody, a run was there while traffic of many flowed. Here sites are simulated whose "
        "every transfer is known: classes and periods of each run's own bytes are held against what is told without "
        "them. [What a release says of all runs](population.md)."
    )
    yield Table(("way", "what it goes by"), [(name, words) for name, (words, _) in WAYS.items()])
    yield "## Classes"
    yield _class_words(results)
    yield Figure(
        "Shares of runs by class, of applications with a signature, both directions",
        "shares",
        partial(draw_shares, shares(results)),
    )
    yield class_table(results)
    yield _asked_words(results)
    yield "Right classes of runs with a signature, family by family:"
    yield family_table(results)
    yield "## By expected correlation"
    yield _trust_words()
    yield trust_table(results)
    yield "## Periods"
    yield _period_words(results)
    yield period_table(results)


def trust_table(results: Results) -> Table:
    """Return how often inferred classes and periods are right, by the expected correlation of the signature."""
    is_said = pl.col("period_s").is_not_null()
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < _SAME).fill_null(value=False)
    lower = (pl.col("trust") * 10).floor().clip(0, 9) / 10
    rows = (
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
    return Table.of(
        rows,
        ("expected correlation", "{lower:.1f} to {upper:.1f}"),
        ("runs", "{run_count:,}"),
        ("right class", "{right:%}"),
        ("said to be periodic", "{said:%}"),
        ("right period, of those said", "{of_said:%}"),
    )


def _trust_words() -> str:
    threshold = Settings().signatures.min_expected_correlation
    return (
        f"A release infers nothing from signatures whose expected correlation is below {threshold:g} "
        "(`signatures.min_expected_correlation`): there at least a fourth of the classes is wrong."
    )


def _class_words(results: Results) -> str:
    found = {(row["level"], row["way"]): row for row in classes(results, "level").iter_rows(named=True)}
    traffic, ours = (
        ", ".join(
            f"{percent(found[level, way]['signed_right'])} ({level})" for level in LEVELS if (level, way) in found
        )
        for way in (_ASKED, _OURS)
    )
    return (
        f"Of runs whose application has a signature, the class is right in {ours} by the signature, in {traffic} by "
        "all that flowed. So a release infers the class of a run from its application's signature where its own bytes "
        "were not measured, and gives none where there is no such signature."
    )


def _asked_words(results: Results) -> str:
    count = results.params.seed_count
    return (
        f"{count} {'site' if count == 1 else 'sites'} of each of the [families](attribution-study.md#by-family) and "
        f"levels, of {DAYS:g} days. Runs shorter than ten minutes have no class. Shares off by: half of the sum of the "
        "differences between the shares that classes have and those that they are told to have. Signatures are found "
        "in the same traffic, of applications with five runs or more."
    )


def _period_words(results: Results) -> str:
    return (
        f"Periods by the night's default method. Right is what differs by less than {percent(_SAME)} from the period "
        "of the run's own bytes. Of what is explained by minute no period is asked: a minute is too long for most."
    )
