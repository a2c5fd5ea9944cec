"""Extrapolate Recorder traces: read them, fit models, and build a trace at another rank count with its record."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosig.traces.extrapolation.compression import Progress, comparable
from iosig.traces.extrapolation.records import Record, make_given_trace, make_totals, record
from iosig.traces.extrapolation.view import recorder_forms
from iosig.transforms.extrapolation.count_models import CountFamily
from iosig.transforms.extrapolation.evaluation import MAX_RANKS
from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, extrapolate_to, fit_trace
from iosig.transforms.extrapolation.iteration_models import Families
from iosig.transforms.extrapolation.result import ExtrapolatedTrace
from iosig.transforms.traces.totals import compute_totals
from iosig.warehouse.errors import InputRefused, UsageError


@dataclass(frozen=True, slots=True)
class ExtrapolationRequest:
    """An extrapolation request: the traces, the rank count, whether to keep nested calls, and a user's own models."""

    paths: tuple[Path, ...]
    process_count: int
    has_nested: bool = False
    models: Path | None = None


def extrapolate_traces(query: ExtrapolationRequest, progress: Progress) -> tuple[ExtrapolatedTrace, Record]:
    """Extrapolate traces to a rank count; return the trace or the reasons for its absence, and the record.

    Raises InputRefused if a trace cannot be read completely.
    """
    if query.process_count > MAX_RANKS:
        raise UsageError(f"--ranks: {query.process_count:,} exceed the maximum of {MAX_RANKS:,}.")
    params = ExtrapolationParams(families=families(query.models))
    traces = comparable(query.paths, has_nested=query.has_nested, progress=progress)
    with _refuse_model_errors(query.models):
        extrapolation = extrapolate_to(fit_trace(traces, params), query.process_count)
    given_traces = [
        make_given_trace(path, trace.process_count) for path, trace in zip(query.paths, traces, strict=True)
    ]
    totals = make_totals(compute_totals(extrapolation.trace, recorder_forms())) if extrapolation.trace else None
    return extrapolation, record(extrapolation, given_traces, has_nested_calls=query.has_nested, totals=totals)


def families(path: Path | None) -> Families:
    """Return the model families of the paper, followed by those of a user's Python file.

    The file may define `COUNT_FAMILIES` (`iosig.transforms.extrapolation.count_models.CountFamily`) and `RANK_FAMILIES`
    (`iosig.transforms.extrapolation.rank_models.RankFamily`). Raises InputRefused if it cannot run or defines neither.
    """
    defaults = Families()
    if path is None:
        return defaults
    spec = importlib.util.spec_from_file_location("iosig_models", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--models {path}: not a Python file; its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any exception of the user's own file is for the user to fix
        raise InputRefused(f"{path.name} cannot be run: {type(error).__name__}: {error}.", "Mend it.") from error
    counts, ranks = (_members(path, module, name) for name in ("COUNT_FAMILIES", "RANK_FAMILIES"))
    if not counts and not ranks:
        raise InputRefused(f"{path.name} has no models.", "Name them in COUNT_FAMILIES or RANK_FAMILIES, as a tuple.")
    if not all(isinstance(family, CountFamily) for family in counts):
        remedy = "Make each an iosig.transforms.extrapolation.count_models.CountFamily."
        raise InputRefused(f"COUNT_FAMILIES of {path.name} must contain only families.", remedy)
    if not all(callable(family) for family in ranks):
        remedy = (
            "Make each a function of columns and families, as described in "
            "iosig.transforms.extrapolation.rank_models.RankFamily."
        )
        raise InputRefused(f"RANK_FAMILIES of {path.name} must contain only functions.", remedy)
    return Families((*defaults.counts, *counts), (*defaults.ranks, *ranks))


def _members(path: Path, module: object, name: str) -> tuple[Any, ...]:
    members = getattr(module, name, ())
    if not isinstance(members, tuple | list):
        raise InputRefused(f"{name} of {path.name} is not a tuple.", f"Write {name} = (first, second, ...).")
    return tuple(members)


@contextmanager
def _refuse_model_errors(models: Path | None) -> Iterator[None]:
    """Convert exceptions of a user's own models into refusals; exceptions of iosig itself propagate unchanged."""
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if models and frame.filename == str(models)]
        if models is None or not lines:
            raise
        reason = f"{models.name}, line {lines[-1]}: {type(error).__name__}: {error}."
        raise InputRefused(reason, "Fix the model: fit must return None for data that it does not describe.") from error
