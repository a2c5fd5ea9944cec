"""What if: the demand of a traced run, or of one at a rank count that nobody ran, as a job that would start now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iosig.answers.advice.inputs import KnownSignature, Rates
from iosig.answers.forecast.jobs import JobAhead
from iosig.warehouse.errors import InputRefused, UsageError

if TYPE_CHECKING:
    from iosig.traces.extrapolation.compressing import Progress
    from iosig.transforms.traces.trace import CompressedTrace

#: a request that took no time took so long
_LEAST_S = 1e-3


def asked_for(paths: Sequence[Path], rank_count: int | None, progress: Progress) -> JobAhead:
    """Return the job that would run what a trace holds, from now on.

    paths: a compressed trace (`iosig compress`, `iosig extrapolate`), or Recorder traces at several rank counts, of
    which rank_count is extrapolated. Raises UsageError where they do not fit that, InputRefused where they cannot be
    read, or no trace of that rank count can be made.
    """
    trace = _trace(paths, rank_count, progress)
    name = f"{paths[0].name} at {trace.process_count:,} ranks"
    rates = _rates(trace, name)
    signature = KnownSignature(name, None, rates, "mix", {}, expected_correlation=1.0)
    return JobAhead(name, name, None, None, "known", signature, None, 0.0, 0.0, 0.0, float("inf"))


def _trace(paths: Sequence[Path], rank_count: int | None, progress: Progress) -> CompressedTrace:
    from iosig.traces.extrapolation.view import read

    if len(paths) == 1:
        trace = read(paths[0])
        if rank_count not in (None, trace.process_count):
            raise UsageError(
                f"{paths[0].name} is of {trace.process_count:,} ranks: for {rank_count:,} give the Recorder traces, "
                "each with --what-if, or what `iosig extrapolate` made of them."
            )
        return trace
    if rank_count is None:
        raise UsageError("Say with --ranks which rank count the traces are to be extrapolated to.")
    from iosig.traces.extrapolation.extrapolating import Asked, extrapolated

    found, _ = extrapolated(Asked(tuple(paths), rank_count), progress)
    if found.trace is None:
        first = found.refusals[0]
        raise InputRefused(
            f"There is no trace of {rank_count:,} ranks: {first.field}: {first.reason}.",
            "`iosig extrapolate` says all that is in the way.",
        )
    return found.trace


def _rates(trace: CompressedTrace, name: str) -> Rates:
    """Return what all ranks together read and write."""
    from iosig.traces.extrapolation.view import recorder_forms, used
    from iosig.transforms.traces.timelines import compute_timeline

    with used():
        found = compute_timeline(trace, recorder_forms())
    # layers that call each other tell of the same bytes: those of the outermost count
    moved = found.intervals.drop_nulls("bytes").filter(found.intervals.drop_nulls("bytes")["bytes"] > 0)
    if moved.is_empty():
        raise InputRefused(f"{name} moves no bytes that are known.", "Give a trace with reads or writes.")
    start_s, end_s, volume = (moved[column].to_numpy() for column in ("start_s", "end_s", "bytes"))
    return Rates.of_bursts(start_s, np.maximum(end_s - start_s, _LEAST_S), volume, found.duration_s)
