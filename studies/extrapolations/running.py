"""Fit models on some rank counts of each program, and check them call by call at the others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from iosig.studies.extrapolations.checking import compare_calls, compute_end_s, compute_trace_end_s, remove_times
from iosig.studies.extrapolations.maps import SCHEMA as MAPS, generate_map_rows
from iosig.studies.extrapolations.programs import Program, Run, decode_runs, find_programs
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, extrapolate_to, fit_trace
from iosig.transforms.extrapolation.result import ExtrapolatedTrace, FittedTrace
from iosig.transforms.traces.compression import compress, compress_together
from iosig.transforms.traces.frames import to_frame
from iosig.transforms.traces.trace import CompressedTrace
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder.signatures import SignedRank

_Row = tuple[Any, ...]

#: parameters of fits: four rank counts, as the command requires
_FULL_PARAMS = ExtrapolationParams(min_rank_counts=4)
#: of programs traced at only four, one is left out: three discriminate between models of two parameters
_HELD_OUT_PARAMS = ExtrapolationParams(min_rank_counts=3)
#: extrapolated rank counts at which the size of the compressed trace is measured
FAR_RANK_COUNTS = (100, 1_000, 1_000_000)
#: multiples of the traced rank counts to which times are extrapolated
_TIME_MULTIPLES = (1, 2, 4)
#: maximum rank count to which times are extrapolated, unless it was traced; the cost is linear in ranks
_MAX_TIMED_RANKS = 512

#: schema with one row per program and rank count, for all calls, as in `iosig compress`
TRACES = {
    "program": pl.String,
    "process_count": pl.Int64,
    "call_count": pl.Int64,
    "outer_call_count": pl.Int64,
    "class_count": pl.Int64,
    "expanded_count": pl.Int64,
    "traced_bytes": pl.Int64,
    "compressed_bytes": pl.Int64,
}
#: schema with one row per program and rank count, with and without nested calls, in and out of sample (`is_unseen`)
CHECKS = {
    "program": pl.String,
    "has_nested": pl.Boolean,
    "is_unseen": pl.Boolean,
    "process_count": pl.Int64,
    "outcome": pl.String,
    "field": pl.String,
    "reason": pl.String,
    "refused_count": pl.Int64,
    "call_count": pl.Int64,
    "equal_count": pl.Int64,
    "traced_s": pl.Float64,
    "extrapolated_s": pl.Float64,
    "mean_s": pl.Float64,
}
#: schema with one row per field that varies
MODELS = {"program": pl.String, "has_nested": pl.Boolean, "field": pl.String, "formula": pl.String}
#: sizes of extrapolated compressed traces, with nested calls
SIZES = {"program": pl.String, "process_count": pl.Int64, "compressed_bytes": pl.Int64}
#: extrapolated times [s], from models fitted without the largest traced rank count
CURVES = {"program": pl.String, "process_count": pl.Int64, "extrapolated_s": pl.Float64}


@dataclass(frozen=True, slots=True)
class StudyParams:
    """Folder of the traces, and number of processes (one per core if None)."""

    traces: Path
    worker_count: int | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """Tables with the schemas above and `maps.SCHEMA`, sorted by program."""

    traces: pl.DataFrame
    checks: pl.DataFrame
    models: pl.DataFrame
    sizes: pl.DataFrame
    curves: pl.DataFrame
    maps: pl.DataFrame


_SCHEMAS: dict[str, dict[str, Any]] = {
    "traces": TRACES,
    "checks": CHECKS,
    "models": MODELS,
    "sizes": SIZES,
    "curves": CURVES,
    "maps": MAPS,
}


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Study all programs of a folder; raises InputRefused if there are none or a trace is unreadable."""
    parts = map_work_items(evaluate_program, find_programs(params.traces), params.worker_count, report_progress)
    return Results(*(pl.concat([getattr(part, field.name) for part in parts]) for field in fields(Results)))


def evaluate_program(program: Program) -> Results:
    """Compress, fit, extrapolate and check one program; returns its rows of all tables."""
    name, runs = program.name, decode_runs(program)
    rows: dict[str, list[_Row]] = {table: [] for table in _SCHEMAS}
    rows["traces"] += [(name, *_compress_run(run)) for run in runs]
    without_nested = _FittedRuns.fit(runs, has_nested=False)
    rows["curves"] += [(name, *row) for row in without_nested.curve()]
    rows["maps"] += [(name, *row) for row in generate_map_rows(without_nested.all_known, without_nested.together)]
    without_nested_results = checks, models = (
        list(without_nested.checks()),
        [(model.field, model.formula) for model in without_nested.all_known.models],
    )
    with_nested = without_nested
    if any(run.has_nested for run in runs):
        with_nested = _FittedRuns.fit(runs, has_nested=True)
        checks, models = (
            list(with_nested.checks()),
            [(model.field, model.formula) for model in with_nested.all_known.models],
        )
    rows["sizes"] += [(name, *row) for row in with_nested.sizes()]
    rows["checks"] += [
        (name, is_nested, *row)
        for is_nested, part in ((False, without_nested_results[0]), (True, checks))
        for row in part
    ]
    rows["models"] += [
        (name, is_nested, *row)
        for is_nested, part in ((False, without_nested_results[1]), (True, models))
        for row in part
    ]
    return Results(**{name: pl.DataFrame(rows[name], schema, orient="row") for name, schema in _SCHEMAS.items()})


# ---- one trace


def _compress_run(run: Run) -> tuple[int, int, int, int, int, int, int]:
    """Compress and re-expand one run; returns a row of `TRACES` without the program."""
    trace = compress(run.process_count, run.ranks)
    comparison = compare_calls(run.ranks, trace)
    return (
        run.process_count,
        comparison.call_count,
        sum(rank.order.size for rank in run.select_calls(has_nested=False)),
        len(trace.classes),
        comparison.equal_count,
        run.traced_bytes,
        _file_bytes(trace),
    )


def _file_bytes(trace: CompressedTrace) -> int:
    """Return the file size of a compressed trace."""
    with tempfile.TemporaryDirectory(prefix="iosig-study-") as folder:
        path = Path(folder) / "trace.parquet"
        compressed_traces.write(path, to_frame(trace), {"process_count": str(trace.process_count)})
        return path.stat().st_size


# ---- all traces of a program


@dataclass(frozen=True, slots=True)
class _FittedRuns:
    """A program's runs, with or without nested calls, and the models fitted on all runs and on all but one."""

    counts: tuple[int, ...]
    ranks: tuple[tuple[SignedRank, ...], ...]
    together: tuple[CompressedTrace, ...]
    all_known: FittedTrace
    unseen: tuple[FittedTrace, ...]

    @classmethod
    def fit(cls, runs: Sequence[Run], *, has_nested: bool) -> _FittedRuns:
        """Compress the runs and fit the models.

        Traces that are compressed together have the same width of zero-padded numbers. For the fit without the largest
        run, the other runs are therefore compressed without it, so that no information leaks from it.
        """
        counts = tuple(run.process_count for run in runs)
        ranks = tuple(run.select_calls(has_nested=has_nested) for run in runs)
        pairs = list(zip(counts, ranks, strict=True))
        together = compress_together(pairs)
        leave_one_out = [(*together[:place], *together[place + 1 :]) for place in range(len(counts) - 1)]
        held_out = (*leave_one_out, compress_together(pairs[:-1]))
        all_known = fit_trace(together, _FULL_PARAMS)
        held_out_params = _FULL_PARAMS if len(counts) > 4 else _HELD_OUT_PARAMS
        return cls(counts, ranks, together, all_known, tuple(fit_trace(traces, held_out_params) for traces in held_out))

    def checks(self) -> Iterator[_Row]:
        """Yield a row of `CHECKS` for each rank count, out of sample and in sample."""
        ends = [compute_trace_end_s(ranks) for ranks in self.ranks]
        for place, (count, ranks) in enumerate(zip(self.counts, self.ranks, strict=True)):
            out_of_sample = extrapolate_to(self.unseen[place], count)
            result = _classify_outcome(ranks, out_of_sample)
            inputs = [end for index, end in enumerate(ends) if end is not None and index != place]
            mean_s = sum(inputs) / len(inputs) if inputs else None
            yield (
                True,
                count,
                *result,
                ends[place],
                None if out_of_sample.trace is None else compute_end_s(out_of_sample.trace),
                mean_s,
            )
            in_sample = extrapolate_to(self.all_known, count)
            is_same = (
                in_sample.trace is not None
                and out_of_sample.trace is not None
                and remove_times(in_sample.trace) == remove_times(out_of_sample.trace)
            )
            yield (False, count, *(result if is_same else _classify_outcome(ranks, in_sample)), ends[place], None, None)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield rows of `SIZES`, without the program."""
        for count in FAR_RANK_COUNTS:
            if count > max(self.counts) and (trace := extrapolate_to(self.all_known, count).trace) is not None:
                yield count, _file_bytes(trace)

    def curve(self) -> Iterator[tuple[int, float]]:
        """Yield rows of `CURVES`, without the program."""
        max_rank_count = max(_MAX_TIMED_RANKS, *self.counts)
        for count in sorted({count * times for count in self.counts for times in _TIME_MULTIPLES}):
            if count > max_rank_count:
                break
            trace = extrapolate_to(self.unseen[-1], count).trace
            if trace is not None and (end := compute_end_s(trace)) is not None:
                yield count, end


def _classify_outcome(
    ranks: Sequence[SignedRank], extrapolation: ExtrapolatedTrace
) -> tuple[str, str | None, str | None, int, int, int | None]:
    """Return outcome, first refused field and its reason, number of refused fields, calls, and equal calls.

    ranks: the traced calls at the extrapolated rank count.
    """
    calls = sum(rank.order.size for rank in ranks)
    if extrapolation.trace is None:
        first = extrapolation.refusals[0]
        return "refused", first.field, first.reason, len(extrapolation.refusals), calls, None
    comparison = compare_calls(ranks, extrapolation.trace)
    return "exact" if comparison.is_exact else "wrong", None, None, 0, calls, comparison.equal_count
