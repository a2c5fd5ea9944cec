"""The study itself: for each program, models from some rank counts, checked call by call at the others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from iosig.studies.extrapolations.checking import compared, end_s, traced_end_s, untimed
from iosig.studies.extrapolations.maps import SCHEMA as MAPS, map_rows
from iosig.studies.extrapolations.programs import Program, Run, programs, runs
from iosig.studies.pieces import Told, nobody, worked
from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, extrapolate_to, fit_trace
from iosig.transforms.extrapolation.result import Extrapolated, FittedTrace
from iosig.transforms.traces.compression import compress, compress_together
from iosig.transforms.traces.frames import to_frame
from iosig.transforms.traces.trace import CompressedTrace
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder.signatures import SignedRank

_Row = tuple[Any, ...]

#: an unseen rank count is left out of the fit: three rank counts tell models of two parameters apart
_UNSEEN = ExtrapolationParams(least_rank_counts=3)
_ALL = ExtrapolationParams(least_rank_counts=4)
#: rank counts nobody ran at which the compressed trace is written, to see its size
FAR = (100, 1_000, 1_000_000)
#: the times are extrapolated to the traced rank counts, and to so many times these
_TIMES_FURTHER = (1, 2, 4)
#: but to no more ranks, unless they were traced: each of them is gone through
_MOST_TIMED_RANKS = 512

#: a row for each program and rank count: all calls, as `iosig compress` takes them
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
#: a row for each program, with nested calls and without, and rank count: left out of the fit (`unseen`), or given
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
#: a row for each field that is no constant
MODELS = {"program": pl.String, "has_nested": pl.Boolean, "field": pl.String, "formula": pl.String}
#: bytes of the compressed traces of rank counts that nobody ran, with nested calls
SIZES = {"program": pl.String, "process_count": pl.Int64, "compressed_bytes": pl.Int64}
#: times [s] at rank counts, from models that do not know the largest traced one
CURVES = {"program": pl.String, "process_count": pl.Int64, "extrapolated_s": pl.Float64}


@dataclass(frozen=True, slots=True)
class StudyParams:
    """Where the traces lie, and how many processes work on them: as many as there are cores if None."""

    traces: Path
    worker_count: int | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it: tables of the columns above and of `maps.SCHEMA`, in the order of the programs."""

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


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Study all programs of a folder; raise InputRefused where it has none, or where a trace cannot be read."""
    parts = worked(studied, programs(params.traces), params.worker_count, told)
    return Results(*(pl.concat([getattr(part, one.name) for part in parts]) for one in fields(Results)))


def studied(program: Program) -> Results:
    """Return what comes of one program."""
    name, known = program.name, runs(program)
    rows: dict[str, list[_Row]] = {table: [] for table in _SCHEMAS}
    rows["traces"] += [(name, *_compressed(run)) for run in known]
    outer = _Studying.of(known, has_nested=False)
    rows["curves"] += [(name, *row) for row in outer.curve()]
    rows["maps"] += [(name, *row) for row in map_rows(outer.all_known, outer.together)]
    own = checks, models = list(outer.checks()), [(model.field, model.formula) for model in outer.all_known.models]
    with_nested = outer
    if any(run.has_nested for run in known):
        with_nested = _Studying.of(known, has_nested=True)
        checks, models = list(with_nested.checks()), [(one.field, one.formula) for one in with_nested.all_known.models]
    rows["sizes"] += [(name, *row) for row in with_nested.sizes()]
    rows["checks"] += [(name, is_nested, *row) for is_nested, part in ((False, own[0]), (True, checks)) for row in part]
    rows["models"] += [(name, is_nested, *row) for is_nested, part in ((False, own[1]), (True, models)) for row in part]
    return Results(**{name: pl.DataFrame(rows[name], schema, orient="row") for name, schema in _SCHEMAS.items()})


# ---- one trace


def _compressed(run: Run) -> tuple[int, int, int, int, int, int, int]:
    """Return a row of `TRACES`, without the program: one run by itself, compressed and expanded again."""
    trace = compress(run.process_count, run.ranks)
    found = compared(run.ranks, trace)
    return (
        run.process_count,
        found.call_count,
        sum(rank.order.size for rank in run.comparable(has_nested=False)),
        len(trace.classes),
        found.equal_count,
        run.traced_bytes,
        _file_bytes(trace),
    )


def _file_bytes(trace: CompressedTrace) -> int:
    """Return how large the file of a compressed trace is."""
    with tempfile.TemporaryDirectory(prefix="iosig-study-") as folder:
        path = Path(folder) / "trace.parquet"
        compressed_traces.write(path, to_frame(trace), {"process_count": str(trace.process_count)})
        return path.stat().st_size


# ---- all traces of a program


@dataclass(frozen=True, slots=True)
class _Studying:
    """A program's runs, with nested calls or without, and the models of all of them and of all but one."""

    counts: tuple[int, ...]
    ranks: tuple[tuple[SignedRank, ...], ...]
    together: tuple[CompressedTrace, ...]
    all_known: FittedTrace
    unseen: tuple[FittedTrace, ...]

    @classmethod
    def of(cls, known: Sequence[Run], *, has_nested: bool) -> _Studying:
        """Compress the runs and fit their models.

        Traces that are compressed together agree in how far their numbers are filled up with zeros: so the largest is
        left out of that as well, where it is the unseen one, and nothing at all of it can be known.
        """
        counts = tuple(run.process_count for run in known)
        ranks = tuple(run.comparable(has_nested=has_nested) for run in known)
        pairs = list(zip(counts, ranks, strict=True))
        together = compress_together(pairs)
        others = [(*together[:place], *together[place + 1 :]) for place in range(len(counts) - 1)]
        unseen = (*others, compress_together(pairs[:-1]))
        all_known = fit_trace(together, _ALL)
        return cls(counts, ranks, together, all_known, tuple(fit_trace(traces, _UNSEEN) for traces in unseen))

    def checks(self) -> Iterator[_Row]:
        """Yield a row of `CHECKS` for each rank count: left out, and then given with all others."""
        ends = [traced_end_s(ranks) for ranks in self.ranks]
        for place, (count, ranks) in enumerate(zip(self.counts, self.ranks, strict=True)):
            unseen = extrapolate_to(self.unseen[place], count)
            verdict = _verdict(ranks, unseen)
            inputs = [end for other, end in enumerate(ends) if end is not None and other != place]
            mean_s = sum(inputs) / len(inputs) if inputs else None
            yield (True, count, *verdict, ends[place], None if unseen.trace is None else end_s(unseen.trace), mean_s)
            given = extrapolate_to(self.all_known, count)
            is_same = (
                given.trace is not None and unseen.trace is not None and untimed(given.trace) == untimed(unseen.trace)
            )
            yield (False, count, *(verdict if is_same else _verdict(ranks, given)), ends[place], None, None)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield rows of `SIZES`, without the program."""
        for count in FAR:
            if count > max(self.counts) and (trace := extrapolate_to(self.all_known, count).trace) is not None:
                yield count, _file_bytes(trace)

    def curve(self) -> Iterator[tuple[int, float]]:
        """Yield rows of `CURVES`, without the program."""
        most = max(_MOST_TIMED_RANKS, *self.counts)
        for count in sorted({count * times for count in self.counts for times in _TIMES_FURTHER}):
            if count > most:
                break
            trace = extrapolate_to(self.unseen[-1], count).trace
            if trace is not None and (end := end_s(trace)) is not None:
                yield count, end


def _verdict(
    ranks: Sequence[SignedRank], made: Extrapolated
) -> tuple[str, str | None, str | None, int, int, int | None]:
    """Return outcome, first refused field, its reason, refused fields, calls and equal calls of an extrapolation.

    ranks: what was traced at its rank count.
    """
    calls = sum(rank.order.size for rank in ranks)
    if made.trace is None:
        first = made.refusals[0]
        return "refused", first.field, first.reason, len(made.refusals), calls, None
    found = compared(ranks, made.trace)
    return "exact" if found.is_exact else "wrong", None, None, 0, calls, found.equal_count
