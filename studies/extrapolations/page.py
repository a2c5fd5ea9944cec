"""What the study of extrapolations shows: its page, and all tables for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from iosig.studies.extrapolations import figures
from iosig.studies.extrapolations.running import FAR, Results
from iosig.studies.extrapolations.tables import (
    KINDS,
    lossless,
    model_table,
    outcome_table,
    refusal_table,
    size_table,
    summary_table,
    tables,
    time_summary,
    time_table,
)
from iosig.studies.pages import Block, Figure

__all__ = ["blocks", "document", "tables"]


def document(results: Results) -> dict[str, object]:
    """Return the results as plain values."""
    names = ("traces", "checks", "models", "sizes", "curves")
    return {name: getattr(results, name).to_dicts() for name in names}


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    programs = results.traces["program"].n_unique()
    yield "# How exactly traces are extrapolated"
    yield (
        "`iosig extrapolate` makes the I/O trace of a program at a rank count that nobody ran, from traces at four or "
        'more, after ScalaIOExtrap (Luo et al., "HPC I/O Trace Extrapolation", ESPT 2015, DOI '
        f"10.1145/2832106.2832108). Here it is held against the truth: {programs:,} programs, traced with Recorder at "
        f"{_counts(results)} ranks. How to use it: [Extrapolating a trace](extrapolation.md)."
    )
    yield "## In short"
    yield summary_table(results)
    yield (
        "Exact: every call of every rank is the traced one, in order, with all arguments. Refused: nothing is written, "
        "and the field is named. Wrong: it must never be. Unseen: the models are fitted on all other rank counts, and "
        "nothing of the unseen one is known. Outer calls are those that the program makes itself, with nested ones "
        "also those that MPI-IO makes."
    )
    yield from _outcomes(results)
    yield from _models(results)
    yield from _sizes(results)
    yield from _times(results)
    yield from _reading()


def _counts(results: Results) -> str:
    counts = results.traces["process_count"].unique().sort().to_list()
    return " and ".join(part for part in (", ".join(map(str, counts[:-1])), str(counts[-1])) if part)


def _outcomes(results: Results) -> Iterator[Block]:
    for has_nested in KINDS:
        yield f"## {'Calls with nested ones' if has_nested else 'Outer calls'}"
        if not has_nested:
            yield (
                "`largest unseen`: fitted on the smaller rank counts, and compared with the largest call by call "
                "(`calls`, of which `equal`). `each left out`: the same for each rank count. `all given`: fitted on "
                "all, and compared with each. Addresses and MPI statuses are no parameters, and stand as `%p` on both "
                "sides."
            )
        yield outcome_table(results, has_nested=has_nested)
    yield "## What is refused, and why"
    yield refusal_table(results)
    yield (
        "The first of the refused fields is shown; `iosig extrapolate` lists all. The usual reasons:\n\n"
        f"- **Random offsets**{_those(results, 'ior_posix_random')} follow no rule in ranks. Where some of them happen "
        "to be even, they fold into loops of odd lengths, which is what is met first.\n"
        "- **Aggregators.** In Open MPI's collective I/O with nested calls"
        f"{_those(results, 'ior_mpiio_inter_coll', 'ios_mpiio_n1')}, max(1, floor(n/8)) ranks write for all others: "
        "1, 1, 2 and 3 at 8, 12, 16 and 24 ranks. Twelve ranks are off any line through the others, and other ranks "
        "make other calls. The program's own calls are exact all the same, and so are nested ones under ROMIO where "
        "each rank writes its own piece.\n"
        "- **No whole number.** 960 bytes shared out by `960/n` are 34 2/7 for each of 28 ranks: the models hold, but "
        "there is no such trace. What the program does there (it may round, or stop) is not in the traces of rank "
        "counts that divide 960. It is refused with that reason.\n"
        "- **Ambiguous.** `1008/n - 1` and `floor(1000/n)` are the same at 8, 12, 16 and 24 ranks. Where they differ, "
        "as at 6, there is no telling; where they agree, as at 48, there is no need to."
    )


def _those(results: Results, *names: str) -> str:
    """Return which of these programs were studied, in brackets."""
    known = set(results.traces["program"])
    found = [f"`{name}`" for name in names if name in known]
    return f" ({', '.join(found)})" if found else ""


def _models(results: Results) -> Iterator[Block]:
    yield "## Models found"
    # the first program that shares a file out among its ranks
    shown = results.maps.filter(pl.col("program") == pl.col("program").first())
    if not shown.is_empty():
        program, field, formula = (shown.row(0, named=True)[name] for name in ("program", "field", "formula"))
        yield Figure("Offsets", "map", partial(figures.draw_map, shown, f"Offsets of {program}: {formula}"))
        yield (
            f"Where each rank of `{program}` is in its file in each iteration ({field}): traced, and at rank counts "
            "that nobody ran. This is the paper's Table 1 where the program is as there."
        )
    yield (
        "All fields that are not one number everywhere, from all rank counts: `n` is the ranks, `rank` a rank, `i`, "
        "`j`, … count the iterations of the loops around the call, from the outermost. `lseek 2` is the second "
        "argument of lseek, `open 1.3` the third number in the first argument of open, such as a file's name. A class "
        "is the ranks that make the same calls but for such numbers: `from 1, n - 1 of stride 1` is all ranks but 0. "
        "Of nested calls, only what outer ones do not have."
    )
    yield model_table(results)


def _sizes(results: Results) -> Iterator[Block]:
    traces, same, calls, back = lossless(results)
    counts = results.traces["process_count"].to_list()
    least, most = min(counts), max(counts)
    yield "## Sizes"
    if not results.sizes.is_empty():
        draw = partial(figures.draw_sizes, results.traces, results.sizes, "Bytes of a trace by ranks")
        yield Figure("Sizes", "sizes", draw)
    whole = "came back whole" if same == traces else "**did NOT come back whole**"
    yield (
        f"Compression loses nothing but single times: of {traces:,} traces compressed and expanded again, {same:,} "
        f"{whole}: {back:,} of {calls:,} calls, with addresses and statuses as they were."
    )
    yield size_table(results)
    yield (
        f"Bytes as `iosig compress` writes them, of all calls; calls and classes from {least} to {most} ranks; "
        f"`{most} to {least}` is the ratio of compressed bytes. At {FAR[-1]:,} ranks the trace is extrapolated, with "
        "nested calls; a dash where it is refused. Small traces do not shrink: a file has 14 kB of columns and their "
        "descriptions, and then histograms of times for each call of the program; neither depends on how many ranks "
        "make it. As traced, a trace grows with every rank."
    )


def _times(results: Results) -> Iterator[Block]:
    yield "## Times"
    told = time_summary(results)
    if told is None:
        yield "No program has times to compare."
        return
    programs, nearer, ours, mean = told
    checks = results.checks.filter(~pl.col("has_nested") & pl.col("is_unseen"))
    title = "Times by ranks: the models do not know the largest rank count"
    yield Figure("Times", "times", partial(figures.draw_times, checks, results.curves, title))
    yield time_table(results)
    yield (
        "When a rank is done with its last call, on average over ranks, at the largest rank count, which the models do "
        "not know; beside it the plain mean of the times at the other rank counts. Calls are exact; times are not: "
        "they are fitted by the paper's four curves, each gap and each duration by itself, and summed. "
        f"Of {programs:,} programs the models are nearer than the mean in {nearer:,}; the median error is "
        f"{100 * ours:.0f} % (mean: {100 * mean:.0f} %). Each rank count was run once, on one node with more ranks "
        "than cores, where runs of the same program differ by as much. A curve must be the surer of its slope, the "
        "farther it is to reach: beyond some distance it becomes a constant, and a line in the picture breaks off. "
        "Do not take times at many times the traced ranks for more than their order of magnitude."
    )


def _reading() -> Iterator[Block]:
    yield "## What to trace"
    yield (
        "- Four rank counts at least, the same parameters, the same machine. Three of them tell models of two "
        "parameters apart; the fourth is a check.\n"
        "- Not all of them multiples of 8: 8, 16, 24 and 32, the paper's own, hide whether something depends on n/8, "
        "on floor(n/8) or on n dividing a total. 8, 12, 16 and 24 show that for outer calls, and refuse what they "
        "cannot tell.\n"
        "- Rank counts at which the program does whole work: those that divide its totals in strong scaling, that are "
        "multiples of its groups.\n"
        "- With nested calls under Open MPI, 16, 24, 32 and 48: there floor(n/8) is n/8, and what holds only there is "
        "refused elsewhere."
    )
    yield "## What is exact, what is fitted, and what is neither"
    yield (
        "Exact: functions and their order, rank classes, loops, numbers in arguments (offsets, sizes, counts, handles) "
        "and in file names with their padding, by rational arithmetic; a model that misses one number at one rank "
        "count is none. Fitted: times. Neither, and so not in a trace: return values and short reads, which Recorder "
        "does not log; pwritev, preadv and asynchronous I/O, which it does not see; the layout of derived datatypes; "
        "what a program does at a rank count for a reason that none of the traces shows, such as a memory limit or "
        "another algorithm of its MPI library above so many ranks. Exact means: as the traced rank counts have it, all "
        "of them."
    )
    yield (
        "The paper's models are constant, linear, inverse, inverse plus constant, and ((rank + a) mod n) * b, in "
        "ranks and in iterations, with groups of ranks as in `file_<rank/4>`. For others, "
        "[write your own](extrapolation.md#models-of-your-own)."
    )
