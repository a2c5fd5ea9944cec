"""Compute the rows of the tables of the extrapolation study."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import polars as pl

from iosig.cli.printing import bytes_text
from iosig.studies.extrapolations.running import FAR_RANK_COUNTS, Results

KINDS = {False: "outer", True: "with nested"}
_KIND = pl.col("has_nested").replace_strict(KINDS, return_dtype=pl.String).alias("kind")
OUTCOMES = ("exact", "refused", "wrong")
#: text of each outcome, with wrong results highlighted
_WORDS = {"exact": "exact", "refused": "refused", "wrong": "**WRONG**"}
_CALL = re.compile(r"(?:call|loop) \d+,? ?([^,]*), (.*)")


# ---- outcomes


def count_outcomes(checks: pl.DataFrame) -> str:
    """Format the number of checks per outcome: `exact 4`, `exact 3, refused 1`."""
    counts = dict(checks["outcome"].value_counts().rows())
    return ", ".join(f"{_WORDS[outcome]} {counts[outcome]}" for outcome in OUTCOMES if outcome in counts)


def summarize_outcomes(results: Results) -> pl.DataFrame:
    """Count outcomes and equal calls over all programs, with and without nested calls.

    Unseen rank counts are the largest ones. Columns equal_count, call_count: without refused traces.
    """
    checks = pl.concat([select_largest(results.checks).filter("is_unseen"), results.checks.filter(is_unseen=False)])
    is_answered = pl.col("outcome") != "refused"
    counts = checks.group_by("is_unseen", "has_nested").agg(
        *((pl.col("outcome") == outcome).sum().alias(outcome) for outcome in OUTCOMES),
        *(pl.col(name).filter(is_answered).sum() for name in ("equal_count", "call_count")),
    )
    checked = (
        pl.when("is_unseen").then(pl.lit("largest rank count, unseen")).otherwise(pl.lit("every rank count, all given"))
    )
    marked = pl.when(pl.col("wrong") > 0).then(pl.format("**{}**", "wrong")).otherwise(pl.lit("0"))
    ordered = counts.sort("is_unseen", "has_nested", descending=[True, False])
    return ordered.with_columns(_KIND, checked=checked, marked=marked)


def select_largest(checks: pl.DataFrame) -> pl.DataFrame:
    """Return the rows at each program's largest rank count."""
    return checks.filter(pl.col("process_count") == pl.col("process_count").max().over("program"))


def list_outcomes(results: Results, *, has_nested: bool) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each program's checks, with or without nested calls."""
    checks = results.checks.filter(has_nested=has_nested)
    for name in _programs(results):
        program_checks = checks.filter(program=name)
        held_out = select_largest(program_checks.filter("is_unseen")).row(0, named=True)
        yield held_out | {
            "outcome": _WORDS[held_out["outcome"]],
            "counts": ", ".join(map(str, program_checks["process_count"].unique().sort())),
            "left_out": count_outcomes(program_checks.filter("is_unseen")),
            "given": count_outcomes(program_checks.filter(~pl.col("is_unseen"))),
        }


def select_refusals(results: Results) -> pl.DataFrame:
    """Return the first refused field of each refused program, in sample before out of sample."""
    refused = select_largest(results.checks).filter(outcome="refused").sort("program", "has_nested", "is_unseen")
    first = refused.unique(["program", "has_nested"], keep="first", maintain_order=True)
    return first.with_columns(_KIND)


# ---- models


def list_models(results: Results) -> Iterator[dict[str, str]]:
    """Yield the distinct models of each program, then those found only in nested calls."""
    for name in _programs(results):
        listed_formulas: set[str] = set()
        for has_nested, kind in KINDS.items():
            program_models = results.models.filter(program=name, has_nested=has_nested)
            grouped = program_models.group_by("formula", maintain_order=True).agg("field")
            for formula, fields in grouped.rows():
                if formula not in listed_formulas:
                    listed_formulas.add(formula)
                    yield {"program": name, "kind": kind, "formula": formula, "places": _format_places(fields)}


def _format_places(fields: Sequence[str]) -> str:
    """Join the fields of a model without class and call numbers: `MPI_File_seek 2`."""
    places: dict[str, None] = {}
    for field in fields:
        match = _CALL.search(field)
        if match is None:
            places["ranks of a class"] = None
        else:
            place = match[2].removeprefix("argument ").replace(", number ", ".")
            places[f"{match[1]} {place}" if match[1] else f"{place} of a loop"] = None
    return ", ".join(places)


# ---- sizes


def list_sizes(results: Results) -> Iterator[dict[str, Any]]:
    """Yield calls, classes and trace sizes at the smallest and largest rank count of each program."""
    for name in _programs(results):
        traces = results.traces.filter(program=name).sort("process_count")
        first, last = traces.row(0, named=True), traces.row(-1, named=True)
        far_bytes = results.sizes.filter(program=name, process_count=FAR_RANK_COUNTS[-1])["compressed_bytes"]
        ends = {column: _format_range(first[column], last[column]) for column in ("call_count", "class_count")}
        sizes = {
            f"{end}_{kind}": bytes_text(row[f"{kind}_bytes"])
            for end, row in (("first", first), ("last", last))
            for kind in ("traced", "compressed")
        }
        ratio = last["compressed_bytes"] / first["compressed_bytes"]
        yield {
            "program": name,
            "ratio": ratio,
            "far": bytes_text(far_bytes[0] if len(far_bytes) else None),
            **ends,
            **sizes,
        }


def _format_range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def summarize_lossless(results: Results) -> dict[str, int]:
    """Count traces and calls, and those reproduced exactly at their positions."""
    traces = results.traces
    return {
        "trace_count": traces.height,
        "same_trace_count": traces.filter(pl.col("expanded_count") == pl.col("call_count")).height,
        "call_count": int(traces["call_count"].sum()),
        "same_call_count": int(traces["expanded_count"].sum()),
    }


# ---- times


def time_summary(timed: pl.DataFrame) -> dict[str, float] | None:
    """Count the programs with models better than the mean of the inputs, and return both median relative errors."""
    if timed.is_empty():
        return None
    model, mean = (timed[name].abs() for name in ("model_error", "mean_error"))
    return {
        "program_count": timed.height,
        "nearer_count": int((model < mean).sum()),
        "model_error": median(model.to_list()),
        "mean_error": median(mean.to_list()),
    }


def compare_times(results: Results) -> pl.DataFrame:
    """Return the times of programs with exact outer calls at the unseen largest rank count, and relative errors."""
    checks = select_largest(results.checks.filter(~pl.col("has_nested") & pl.col("is_unseen")))
    return (
        checks.filter(pl.col("traced_s") > 0)
        .drop_nulls(["extrapolated_s", "mean_s"])
        .with_columns(
            model_error=pl.col("extrapolated_s") / pl.col("traced_s") - 1,
            mean_error=pl.col("mean_s") / pl.col("traced_s") - 1,
        )
    )


def _programs(results: Results) -> list[str]:
    return results.traces["program"].unique(maintain_order=True).to_list()
