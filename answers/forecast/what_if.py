"""Build hypothetical jobs that start now, with the demand of a traced or extrapolated run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iosig.answers.advice.inputs import KnownSignature, Rates
from iosig.answers.forecast.jobs import JobAhead
from iosig.warehouse.errors import InputRefused, UsageError

if TYPE_CHECKING:
    from iosig.traces.extrapolation.compression import Progress
    from iosig.transforms.traces.trace import CompressedTrace

#: minimum duration of a request [s]
_MIN_REQUEST_S = 1e-3


def build_what_if_job(paths: Sequence[Path], rank_count: int | None, progress: Progress) -> JobAhead:
    """Build a job that would start now with the demand of a trace.

    paths: a compressed trace (`iosig compress`, `iosig extrapolate`), or Recorder traces at several rank counts, which
    are extrapolated to rank_count. Raises UsageError if the arguments do not fit either form, InputRefused if a trace
    cannot be read or extrapolated.
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
                f"{paths[0].name} has {trace.process_count:,} ranks. For {rank_count:,}, pass several Recorder traces "
                "(repeat --what-if), or the output of `iosig extrapolate`."
            )
        return trace
    if rank_count is None:
        raise UsageError("Pass --ranks with the rank count to extrapolate the traces to.")
    from iosig.traces.extrapolation.extrapolating import ExtrapolationRequest, extrapolate_traces

    extrapolation, _ = extrapolate_traces(ExtrapolationRequest(tuple(paths), rank_count), progress)
    if extrapolation.trace is None:
        first = extrapolation.refusals[0]
        raise InputRefused(
            f"The traces cannot be extrapolated to {rank_count:,} ranks: {first.field}: {first.reason}.",
            "`iosig extrapolate` lists all reasons.",
        )
    return extrapolation.trace


def _rates(trace: CompressedTrace, name: str) -> Rates:
    """Return the total rate of all ranks, reads plus writes."""
    from iosig.traces.extrapolation.view import recorder_forms, refuse_unusable
    from iosig.transforms.traces.timelines import compute_timeline

    with refuse_unusable():
        events = compute_timeline(trace, recorder_forms())
    # nested layers report the same bytes: only the outermost has them in `bytes`
    transfers = events.intervals.drop_nulls("bytes").filter(events.intervals.drop_nulls("bytes")["bytes"] > 0)
    if transfers.is_empty():
        raise InputRefused(f"{name} has no I/O of known size.", "Pass a trace with reads or writes.")
    start_s, end_s, volume = (transfers[column].to_numpy() for column in ("start_s", "end_s", "bytes"))
    return Rates.of_bursts(start_s, np.maximum(end_s - start_s, _MIN_REQUEST_S), volume, events.duration_s)
