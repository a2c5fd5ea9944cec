"""Repeat IOSI for one application of a release, and report its intermediate results.

The results are those of Figures 7 to 11 of IOSI (Liu et al., FAST'14, section 5), from the samples and settings of the
release. They exist for every variant of IOSI, also if the release has no signature of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Instant, Part, make_enum_schema
from iosig.answers.signatures.view import SAMPLE_TABLES, Query, choose_subject, join_names, read_samples
from iosig.estimates.columns import finite_or_none
from iosig.estimates.sample_sets import build_sample_sets, get_params
from iosig.reports.iosi import IosiView
from iosig.settings.model import SignatureSettings
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.iosi import IosiStages, trace_iosi
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.warehouse.contracts.signatures import SIGNATURES
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases.reading import open_release

if TYPE_CHECKING:
    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

#: variants of IOSI, the published one first
VARIANTS = ("iosi", "iosi_filtered", "iosi_raw")
#: settings that the stages depend on
_SETTINGS = ("wavelet_level", "gamma", "kappa", "min_sample_count", "max_duration_s")


@dataclass(frozen=True, slots=True)
class IosiAnswer:
    """Intermediate results, and the runs (n) that they are about, one row each."""

    release_id: str
    view: IosiView
    runs: pl.DataFrame


def trace_application(store: Store, release: Release, selection: Query, job_id: str | None = None) -> IosiAnswer:
    """Repeat IOSI for an application's sample set.

    selection: `method` is one of `VARIANTS`, by default the published one. job_id: the run whose sample is shown; by
    default, the used run with the median volume. Raises UsageError if a name does not exist.
    """
    with open_release(store, release, f"signatures {SAMPLE_TABLES}") as connection:
        subject = choose_subject(connection, release, selection).row(0, named=True)
        # in the order of the night, so that sums have the same bits
        runs = read_samples(connection, subject).sort("node_count", "started_at", "cluster", "job_id")
    if runs.is_empty():
        raise NothingToDo(f"Release {release.release_id} has no samples of {subject['application_id']}.")
    settings, method = _read_settings(release), selection.method or VARIANTS[0]
    params = get_params(settings)
    iosi_params = params.iosi_params(method)
    assert iosi_params is not None
    sample_set = _build_set(runs, settings)
    stages = trace_iosi(sample_set, iosi_params, params.min_run_count)
    view = IosiView(
        application_id=subject["application_id"],
        filesystem=subject["filesystem"],
        direction=subject["direction"],
        method=method,
        job_ids=tuple(runs["job_id"]),
        sample_set=sample_set,
        params=iosi_params,
        min_run_count=params.min_run_count,
        stages=stages,
        run=_choose_run(stages, runs["job_id"].to_list(), job_id),
    )
    return IosiAnswer(release.release_id, view, runs)


def _read_settings(release: Release) -> SignatureSettings:
    """Return the settings of a release that the stages depend on; missing ones have their default."""
    recorded = json.loads(release.parameters).get("signatures", {})
    return SignatureSettings(**{name: recorded[name] for name in _SETTINGS if name in recorded})


def _build_set(runs: pl.DataFrame, settings: SignatureSettings) -> SampleSet:
    subjects = pl.DataFrame({"application_id": runs["application_id"][:1], "count": [runs.height]})
    return build_sample_sets(runs, subjects, settings).get_set(0)


def _choose_run(stages: IosiStages, job_ids: Sequence[str], job_id: str | None) -> int | None:
    """Choose the run to show: the latest with a job id, or the used run with the median volume."""
    used = stages.samples.run.tolist()
    if job_id is None:
        by_volume = sorted(used, key=lambda run: (stages.volume_bytes[run], run))
        return by_volume[(len(used) - 1) // 2] if used else None
    known = [run for run, name in enumerate(job_ids) if name == job_id]
    if not known:
        raise UsageError(f"The sample set has no run of job {job_id}. Its jobs: {join_names(sorted(job_ids))}.")
    if known[-1] not in used:
        raise UsageError(f"Job {job_id} is excluded. Choose a used run: {join_names([job_ids[run] for run in used])}.")
    return known[-1]


# ---- JSON


class _Run(Part):
    cluster: str = Field(description="the machine")
    job_id: str = Field(description="the job")
    started_at: Instant = Field(description="when it started [UTC]")
    duration_s: float = Field(description="its duration [s]")
    sample_bytes: float | None = Field(description="bytes of its sample; null if nothing was measured [B]")
    outlier_factor: float | None = Field(description="its local outlier factor; null if there is none [1]")
    is_excluded: bool = Field(description="whether IOSI excludes it, by duration or volume")
    preprocessed_bytes: float | None = Field(description="bytes after preprocessing; null if it is not used [B]")


class _Level(Part):
    level: int = Field(description="level of the wavelet decomposition")
    is_used: bool = Field(description="whether the method uses this level")
    mean_crest_bytes_per_s: float = Field(description="mean height of crests: lower troughs separate bursts [B/s]")
    burst_count: int = Field(description="bursts of the run at this level [bursts]")
    bytes_per_s: list[float] = Field(description="low-frequency component, second by second [B/s]")


class _ShownRun(Part):
    job_id: str = Field(description="the job")
    start_s: float = Field(description="start of the sample's first step, from the run's start [s]")
    interval_s: float = Field(description="length of the sample's steps [s]")
    sample_bytes_per_s: list[float | None] = Field(description="the sample; null where not measured [B/s]")
    preprocessed_bytes_per_s: list[float] = Field(description="the preprocessed sample, second by second [B/s]")
    levels: list[_Level] = Field(description="its wavelet transform by level; empty without bursts")


class _Point(Part):
    job_id: str = Field(description="the job")
    start_s: float = Field(description="start of the burst [s]")
    peak_s: float = Field(description="its crest after the wavelet transform: the time of the point [s]")
    end_s: float = Field(description="its end [s]")
    correlation: float = Field(description="correlation with the average burst [1]")
    common_burst: int | None = Field(description="number of its common burst, from 0; null for none")


class _Grid(Part):
    width_s: float = Field(description="width of a unit [s]")
    height: float = Field(description="height of a unit, as a correlation [1]")
    explained_count: int = Field(description="points in common bursts of this grid [points]")
    is_best: bool = Field(description="whether the signature comes from this grid")


class _Unit(Part):
    start_s: float = Field(description="start of the unit [s]")
    min_correlation: float = Field(description="its lowest correlation [1]")
    run_count: int = Field(description="runs with a point in the unit [runs]")
    neighborhood_run_count: int = Field(description="runs with a point in its neighborhood [runs]")


class _CommonBurst(Part):
    start_s: float = Field(description="start [s]")
    peak_s: float = Field(description="time of the highest rate [s]")
    end_s: float = Field(description="end [s]")
    volume_bytes: float = Field(description="its bytes [B]")
    support_ratio: float = Field(description="share of the used runs that have it [1]")


class IosiDocument(Document, title="iosig plot iosi"):
    """Intermediate results of IOSI for one application."""

    format: Literal["iosig-iosi/1"] = "iosig-iosi/1"
    release_id: str = Field(description="the release")
    application_id: str = Field(description="user@machine/application/node_count")
    filesystem: str = Field(description="the file system")
    direction: str = Field(description="read or write")
    method: Annotated[str, make_enum_schema(VARIANTS)] = Field(description="variant of IOSI")
    parameters: dict[str, Any] = Field(description="parameters of the method, as in `method_parameters`")
    outcome: Annotated[str, make_enum_schema(SIGNATURES.column("outcome").choices)] = Field(
        description="`extracted`, or why there is no signature"
    )
    outlier_threshold: float | None = Field(description="outliers have a higher factor; null without factors [1]")
    runs: list[_Run] = Field(description="runs of the sample set (Figure 7)")
    background_bytes_per_s: float | None = Field(description="subtracted background (Figure 8); null if unknown [B/s]")
    shown_run: _ShownRun | None = Field(description="one run's sample (Figures 8 and 9); null if no run is used")
    bursts: list[_Point] = Field(description="bursts of all used runs, as points (Figure 10)")
    grids: list[_Grid] = Field(description="grids that were tried (Figure 11)")
    dense_units: list[_Unit] = Field(description="dense units of the best grid (Figure 11)")
    common_bursts: list[_CommonBurst] = Field(description="bursts of the signature, as in `signature_bursts`")


def build_document(answer: IosiAnswer) -> IosiDocument:
    """Build the JSON document."""
    view, stages = answer.view, answer.view.stages
    return IosiDocument(
        release_id=answer.release_id,
        application_id=view.application_id,
        filesystem=view.filesystem,
        direction=view.direction,
        method=view.method,
        parameters={"min_run_count": view.min_run_count, "iosi": asdict(view.params)},
        outcome=stages.signature.outcome,
        outlier_threshold=finite_or_none(stages.scores.threshold[0]),
        runs=_list_runs(answer),
        background_bytes_per_s=finite_or_none(stages.samples.background_bytes_per_s),
        shown_run=None if view.run is None else _describe_run(view, view.run),
        bursts=_list_points(view),
        grids=_list_grids(view),
        dense_units=_list_units(view),
        common_bursts=_list_common_bursts(stages.signature.bursts),
    )


def _list_runs(answer: IosiAnswer) -> list[_Run]:
    stages, preprocessed = answer.view.stages, answer.view.preprocessed_bytes
    return [
        _Run(
            cluster=row["cluster"],
            job_id=row["job_id"],
            started_at=row["started_at"],
            duration_s=row["duration_s"],
            sample_bytes=finite_or_none(stages.volume_bytes[run]),
            outlier_factor=finite_or_none(stages.scores.factor[run]),
            is_excluded=bool(stages.scores.is_outlier[run]),
            preprocessed_bytes=finite_or_none(preprocessed[run]),
        )
        for run, row in enumerate(answer.runs.iter_rows(named=True))
    ]


def _describe_run(view: IosiView, run: int) -> _ShownRun:
    return _ShownRun(
        job_id=view.job_ids[run],
        start_s=float(view.sample_set.start_s[run]),
        interval_s=view.sample_set.interval_s,
        sample_bytes_per_s=[finite_or_none(value) for value in view.sample_set.rates[run].tolist()],
        preprocessed_bytes_per_s=view.stages.samples.filled[view.row].tolist(),
        levels=[
            _Level(
                level=one.level,
                is_used=one.level == view.params.level,
                mean_crest_bytes_per_s=one.mean_crest_bytes_per_s,
                burst_count=one.burst_count,
                bytes_per_s=one.bytes_per_s.tolist(),
            )
            for one in view.smoothed_runs
        ],
    )


def _list_points(view: IosiView) -> list[_Point]:
    segmented, clustered = view.stages.segmented, view.stages.clustered
    if segmented is None or clustered is None:
        return []
    bursts = segmented.bursts
    run = view.stages.samples.run[bursts.run].tolist()
    columns = (bursts.first, bursts.peak, bursts.last + 1, clustered.planes.correlation, clustered.clusters.owner)
    return [
        _Point(
            job_id=view.job_ids[job],
            start_s=start_s,
            peak_s=peak_s,
            end_s=end_s,
            correlation=correlation,
            common_burst=owner if owner >= 0 else None,
        )
        for job, start_s, peak_s, end_s, correlation, owner in zip(
            run, *(column.tolist() for column in columns), strict=True
        )
    ]


def _list_grids(view: IosiView) -> list[_Grid]:
    if (clustered := view.stages.clustered) is None:
        return []
    columns = (clustered.width_s[0], clustered.height[0], clustered.clusters.explained_count[0])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        _Grid(width_s=width_s, height=height, explained_count=count, is_best=number == view.best_grid)
        for number, (width_s, height, count) in enumerate(rows)
    ]


def _list_units(view: IosiView) -> list[_Unit]:
    clustered, dense, best = view.stages.clustered, view.stages.dense_units, view.best_grid
    if clustered is None or dense is None or best is None:
        return []
    columns = (
        dense.column * clustered.width_s[0, best],
        dense.row * clustered.height[0, best],
        dense.sample_count,
        dense.neighborhood_count,
    )
    return [
        _Unit(start_s=start_s, min_correlation=low, run_count=count, neighborhood_run_count=around)
        for start_s, low, count, around in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _list_common_bursts(bursts: Bursts) -> list[_CommonBurst]:
    names = [field.name for field in fields(Bursts)]
    rows = zip(*(getattr(bursts, name).tolist() for name in names), strict=True)
    return [_CommonBurst(**dict(zip(names, row, strict=True))) for row in rows]
