"""The study's results as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median

import polars as pl

from iosig.cli.printing import bytes_text
from iosig.studies.extrapolations.running import FAR, Results
from iosig.studies.pages import Table, tabled

KINDS = {False: "outer", True: "with nested"}
OUTCOMES = ("exact", "refused", "wrong")
#: what must never be stands out, on the page and in a terminal
_WORDS = {"exact": "exact", "refused": "refused", "wrong": "**WRONG**"}
_CALL = re.compile(r"(?:call|loop) \d+,? ?([^,]*), (.*)")


# ---- outcomes


def counted(checks: pl.DataFrame) -> str:
    """Return how many checks came to what, in words: `exact 4`, `exact 3, refused 1`."""
    found = dict(checks["outcome"].value_counts().rows())
    return ", ".join(f"{_WORDS[outcome]} {found[outcome]}" for outcome in OUTCOMES if outcome in found)


@tabled("calls", "checked at", *OUTCOMES, "calls equal", "of")
def summary_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield what became of programs and calls: with outer calls, and with nested ones."""
    for is_unseen, words in ((True, "largest rank count, unseen"), (False, "every rank count, all given")):
        for has_nested, kind in KINDS.items():
            chosen = results.checks.filter(has_nested=has_nested, is_unseen=is_unseen)
            if is_unseen:
                chosen = largest(chosen)
            told = [str(chosen.filter(outcome=outcome).height) for outcome in OUTCOMES]
            made = chosen.filter(pl.col("outcome") != "refused")
            equal, calls = (int(made[name].sum()) for name in ("equal_count", "call_count"))
            told[2] = f"**{told[2]}**" if told[2] != "0" else "0"
            yield kind, words, *told, f"{equal:,}", f"{calls:,}"


def largest(checks: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of each program's largest rank count."""
    return checks.filter(pl.col("process_count") == pl.col("process_count").max().over("program"))


@tabled("program", "traced at", "calls", "largest unseen", "equal", "each left out", "all given")
def outcome_table(results: Results, *, has_nested: bool) -> Iterator[Sequence[str]]:
    """Yield a row for each program."""
    chosen = results.checks.filter(has_nested=has_nested)
    for name in _programs(results):
        own = chosen.filter(program=name)
        unseen = largest(own.filter("is_unseen")).row(0, named=True)
        equal = "-" if unseen["equal_count"] is None else f"{unseen['equal_count']:,}"
        counts = ", ".join(map(str, own["process_count"].unique().sort()))
        told = (counted(own.filter("is_unseen")), counted(own.filter(~pl.col("is_unseen"))))
        yield name, counts, f"{unseen['call_count']:,}", _WORDS[unseen["outcome"]], equal, *told


@tabled("program", "calls", "field", "why", "fields refused")
def refusal_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the first refused field of each program that is refused: with all traces given, else with one unseen."""
    refused = largest(results.checks).filter(outcome="refused").sort("is_unseen", maintain_order=True)
    for name in _programs(results):
        for has_nested, kind in KINDS.items():
            for row in refused.filter(program=name, has_nested=has_nested).head(1).iter_rows(named=True):
                yield name, kind, row["field"], row["reason"], f"{row['refused_count']:,}"


# ---- models


@tabled("program", "calls", "model", "of")
def model_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the distinct models of each program, and those which only the nested calls have."""
    for name in _programs(results):
        known: set[str] = set()
        for has_nested, kind in KINDS.items():
            own = results.models.filter(program=name, has_nested=has_nested)
            grouped = own.group_by("formula", maintain_order=True).agg("field")
            for formula, fields in grouped.rows():
                if formula not in known:
                    known.add(formula)
                    yield name, kind, f"`{formula}`", _places(fields)


def _places(fields: Sequence[str]) -> str:
    """Return in what fields a model is, without the numbers of classes and calls: `MPI_File_seek 2`."""
    found: dict[str, None] = {}
    for field in fields:
        match = _CALL.search(field)
        if match is None:
            found["ranks of a class"] = None
        else:
            place = match[2].removeprefix("argument ").replace(", number ", ".")
            found[f"{match[1]} {place}" if match[1] else f"{place} of a loop"] = None
    return ", ".join(found)


# ---- sizes


def size_table(results: Results) -> Table:
    """Return a row for each program: calls and classes from the smallest to the largest rank count, and bytes."""
    counts = results.traces["process_count"].to_list()
    least, most = min(counts), max(counts)
    both = (f"at {least}", f"at {most}")
    sizes = (f"{word} {count}" for count in both for word in ("traced,", "compressed,"))
    columns = ("program", "calls", "classes", *sizes, f"{most} to {least}", f"at {FAR[-1]:,}")
    return Table(columns, [_size_row(results, name) for name in _programs(results)])


def _size_row(results: Results, name: str) -> Sequence[str]:
    own = results.traces.filter(program=name).sort("process_count")
    first, last = own.row(0, named=True), own.row(-1, named=True)
    ends = [_from_to(first[column], last[column]) for column in ("call_count", "class_count")]
    sizes = [bytes_text(row[column]) for row in (first, last) for column in ("traced_bytes", "compressed_bytes")]
    ratio = f"{last['compressed_bytes'] / first['compressed_bytes']:.2f}"
    far = results.sizes.filter(program=name, process_count=FAR[-1])["compressed_bytes"]
    return name, *ends, *sizes, ratio, bytes_text(far[0] if len(far) else None)


def _from_to(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def lossless(results: Results) -> dict[str, int]:
    """Return how many traces and calls there are, and how many came back whole, and at their places."""
    traces = results.traces
    return {
        "trace_count": traces.height,
        "same_trace_count": traces.filter(pl.col("expanded_count") == pl.col("call_count")).height,
        "call_count": int(traces["call_count"].sum()),
        "same_call_count": int(traces["expanded_count"].sum()),
    }


# ---- times


@tabled("program", "traced [s]", "models [s]", "error [%]", "mean of the others [s]", "error [%]")
def time_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield a row for each program whose outer calls are exact at its largest rank count, which is unseen."""
    for row in _timed(results).iter_rows(named=True):
        cells = [row["traced_s"], row["extrapolated_s"], row["mean_s"]]
        errors = [f"{100 * (row[column] / row['traced_s'] - 1):+.0f}" for column in ("extrapolated_s", "mean_s")]
        traced, models, mean = (f"{value:.3g}" for value in cells)
        yield row["program"], traced, models, errors[0], mean, errors[1]


def time_summary(results: Results) -> dict[str, float] | None:
    """Return programs, those whose models are nearer than the mean of the inputs, and both median errors (ratios)."""
    timed = _timed(results)
    if timed.is_empty():
        return None
    model, mean = ((timed[name] / timed["traced_s"] - 1).abs() for name in ("extrapolated_s", "mean_s"))
    return {
        "program_count": timed.height,
        "nearer_count": int((model < mean).sum()),
        "model_error": median(model.to_list()),
        "mean_error": median(mean.to_list()),
    }


def _timed(results: Results) -> pl.DataFrame:
    chosen = largest(results.checks.filter(~pl.col("has_nested") & pl.col("is_unseen")))
    return chosen.filter(pl.col("traced_s") > 0).drop_nulls(["extrapolated_s", "mean_s"])


def _programs(results: Results) -> list[str]:
    return results.traces["program"].unique(maintain_order=True).to_list()
