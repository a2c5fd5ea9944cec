"""Fit joint signatures at an interval of days, in addition to separate ones; carry them forward otherwise.

The fit covers all applications with runs since the previous fit. It explains the traffic of a file system by the
signatures of all concurrent runs together, and subtracts interference from the samples accordingly. Applications with
few runs in this time contribute their default signature. The result depends only on the inputs of the nightly run, so a
rerun gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, floats, ragged
from iosig.estimates.sample_sets import get_params
from iosig.estimates.signatures import published
from iosig.estimates.signatures.published import SUBJECT
from iosig.flows.steps import signatures as plain
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.signatures import MADE, STALE_SAMPLES
from iosig.flows.steps.step import Step, read_built, read_in_chunks, read_live, read_released
from iosig.settings.model import SignatureSettings
from iosig.transforms.arrays import Ints, Reals, offsets_of, places_of
from iosig.transforms.joint.extraction import JointParams, JointResult, extract_jointly
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from iosig.transforms.signatures import outliers
from iosig.transforms.signatures.expected_correlation import RunSummary, select_method
from iosig.transforms.signatures.methods import MethodSignatures, extract_signatures, select_methods
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, JOINT_RUNS, JOINT_SUBJECTS, SAMPLE_SETS, SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURES
from iosig.warehouse.engine_paths import read_parquet, scan_parquet
from iosig.warehouse.store import models
from iosig.warehouse.store.store import write_parquet

METHOD = "joint"
_RUN = ("cluster", "job_id", "started_at")
#: minimum number of runs in a half of a sample set, for methods that compare halves
_MIN_HALF_RUNS = 3


def make_signatures(context: StepContext) -> int:
    """Extract separate and, if due, joint signatures of applications with new samples.

    Returns the number of new signatures.
    """
    sets = context.frame(SAMPLE_SETS)
    due_subjects = select_due_subjects(context, sets)
    is_joint = pl.col("method") == METHOD
    is_unchanged = pl.struct(SUBJECT).is_in(_subjects(sets, without=due_subjects).implode())
    carried = plain.carry(context, pl.when(is_joint).then(is_unchanged).otherwise(pl.col("is_kept")))
    extracted = {table: context.chunk_paths(table) for table in MADE}
    count = sum(int(scan_parquet(path).select(pl.len()).collect().item()) for path in extracted[SIGNATURES])
    parts = {table: [carried[table], *extracted[table]] for table in MADE}
    for number, rows in enumerate(
        _extract_jointly(context, sets, due_subjects, {table: list(parts[table]) for table in MADE})
    ):
        count += rows[SIGNATURES.name].height
        for table in MADE:
            path = context.folder / "signature_parts" / f"{table.name}-{METHOD}-{number:05d}.parquet"
            parts[table].append(write_parquet(rows[table.name], table, path))
    for table in MADE:
        context.join(parts[table], table)
    path = context.path(SIGNATURES)
    write_parquet(with_defaults(read_parquet(path)), SIGNATURES, path)
    return count


def with_defaults(rows: pl.DataFrame) -> pl.DataFrame:
    """Mark the default signatures of bytes: the joint one if it exists, otherwise one of the separate ones."""
    return _choose_defaults(rows).with_columns(pl.col("is_default") & (pl.col("metric") == "bytes"))


def _choose_defaults(rows: pl.DataFrame) -> pl.DataFrame:
    has_joint = (pl.col("method") == METHOD).any().over(SUBJECT)
    rows = rows.with_columns(is_default=pl.when(has_joint).then(pl.col("method") == METHOD).otherwise("is_default"))
    undecided = rows.filter(~pl.col("is_default").any().over(SUBJECT))
    chosen = [
        (
            *key,
            select_method(
                {method: np.nan if correlation is None else correlation for method, correlation in candidates.rows()}
            ),
        )
        for key, candidates in undecided.select(*SUBJECT, "method", "expected_correlation")
        .partition_by(SUBJECT, as_dict=True, include_key=False, maintain_order=True)
        .items()
    ]
    if not chosen:
        return rows
    defaults = pl.DataFrame(chosen, schema=dict.fromkeys([*SUBJECT, "method"], pl.String), orient="row")
    return rows.update(defaults.with_columns(is_default=pl.lit(True)), on=[*SUBJECT, "method"])


# ---- applications of a joint fit, and its interval


def is_due(last: date | None, now: date | None, interval_days: int) -> bool:
    """Return whether a new interval has begun since the last runs of the previous release."""
    if not interval_days or last is None or now is None:
        return False
    # intervals are counted from a Monday
    return (now.toordinal() - 1) // interval_days > (last.toordinal() - 1) // interval_days


def select_due_subjects(context: StepContext, sets: pl.DataFrame) -> pl.DataFrame:
    """Select the subjects for joint extraction: those with new runs, once the interval has passed."""
    files = context.list_base_files(SAMPLE_SETS)
    last = read_parquet(files, columns=["ended_on"])["ended_on"].max() if files else None
    if not is_due(_date(last), _date(sets["ended_on"].max()), context.settings.joint.interval_days):
        return sets.clear().select(SUBJECT)
    with context.engine() as connection:
        context.expose(connection, SAMPLE_SETS)
        context.expose_released(connection, SIGNATURES)
        return context.compute(connection, JOINT_SUBJECTS)


def _date(value: object) -> date | None:
    return value if isinstance(value, date) else None


def _subjects(sets: pl.DataFrame, without: pl.DataFrame) -> pl.Series:
    remaining = sets.select(SUBJECT).unique().join(without, on=SUBJECT, how="anti")
    return remaining.select(pl.struct(SUBJECT).alias("subject")).to_series()


# ---- joint extraction


def _extract_jointly(
    context: StepContext, sets: pl.DataFrame, due_subjects: pl.DataFrame, parts: Mapping[Table, Sequence[Path]]
) -> Iterator[dict[str, pl.DataFrame]]:
    """Yield the rows of each table for one file system and direction at a time."""
    if due_subjects.is_empty():
        return
    due_sets = sets.join(due_subjects, on=SUBJECT, how="semi", maintain_order="left")
    runs = _runs(context, due_subjects)
    defaults = _read_default_signatures(context, parts)
    settings = context.settings
    params = JointParams(min_run_count=settings.signatures.min_sample_count)
    for key, subject_sets in due_sets.partition_by(
        "filesystem", "direction", as_dict=True, maintain_order=True
    ).items():
        is_here = [pl.col(name) == value for name, value in zip(("filesystem", "direction"), key, strict=True)]
        traffic = _Traffic.collect(context, runs.filter(*is_here), subject_sets)
        known_signatures = traffic.select_known(defaults, str(key[0]), str(key[1]))
        result = extract_jointly(
            traffic.shared, known_signatures, partial(_plainly, settings=settings.signatures), params
        )
        yield _rows(context, subject_sets, traffic, result)


def _runs(context: StepContext, due_subjects: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that were active during a sample of the subjects, as ordered rows of `joint_runs`."""
    with context.engine() as connection:
        context.expose(connection, SAMPLE_SETS, SAMPLES, JOBS)
        models.expose_frame(connection, JOINT_SUBJECTS.layer, JOINT_SUBJECTS.name, due_subjects)
        return context.compute(connection, JOINT_RUNS)


def _read_default_signatures(
    context: StepContext, parts: Mapping[Table, Sequence[Path]]
) -> dict[tuple[str, str, str], tuple[Signature, float]]:
    """Return the default signatures of all applications, with their expected correlation, by subject."""
    with context.engine() as connection:
        for table in MADE:
            models.expose(connection, "main", table, parts[table])
        rows = pl.concat([frames.empty(SIGNATURES), *map(read_parquet, parts[SIGNATURES])])
        rows = with_defaults(rows).filter("is_default", outcome="extracted")
        signatures = published.read_signatures(connection, rows)
    entries = zip(rows.select(SUBJECT).rows(), signatures, floats(rows["expected_correlation"]).tolist(), strict=True)
    return {
        (key[0], key[1], key[2]): (signature, expected_correlation) for key, signature, expected_correlation in entries
    }


@dataclass(frozen=True, slots=True)
class _Traffic:
    """The traffic of one file system in one direction during the samples, with all runs active then."""

    shared: SharedTraffic
    applications: tuple[str, ...]

    @classmethod
    def collect(cls, context: StepContext, runs: pl.DataFrame, selected: pl.DataFrame) -> _Traffic:
        """Collect runs and traffic; drop samples with an interval other than the most common one."""
        interval_s = float(selected["interval_s"].mode().sort()[0])
        runs = runs.filter(pl.col("interval_s") == interval_s)
        start_s = float(epoch_s(runs["grid_started_at"]).min())
        step_s = np.round((epoch_s(runs["grid_started_at"]) - start_s) / interval_s).astype(np.int64)
        volume = _traffic(context, runs, step_s, interval_s)
        names = runs["application_id"].unique().sort()
        places = {name: place for place, name in enumerate(names)}
        started, ended = ((epoch_s(runs[name]) - start_s) / interval_s for name in ("started_at", "ended_at"))
        application = runs["application_id"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
        is_sample = runs["is_sample"].to_numpy()
        shared = SharedTraffic(volume, interval_s, application, len(names), started, ended, is_sample)
        return cls(shared, tuple(names))

    def select_known(
        self, signatures: dict[tuple[str, str, str], tuple[Signature, float]], filesystem: str, direction: str
    ) -> KnownSignatures:
        """Return the known signatures of the applications on a file system in one direction, None if unknown."""
        selected = [signatures.get((name, filesystem, direction)) for name in self.applications]
        return KnownSignatures(
            tuple(None if entry is None else entry[0] for entry in selected),
            np.array([np.nan if entry is None else entry[1] for entry in selected]),
        )


def _traffic(context: StepContext, runs: pl.DataFrame, first: Ints, interval_s: float) -> Reals:
    """Return the bytes of each step, from the samples of all runs; NaN while no run was active. Reads day by day."""
    counts = runs["step_count"].to_numpy()
    volume = np.full(int((first + counts).max()), np.nan)
    key = [*_RUN, "filesystem", "direction"]
    placed = runs.select(*key, "ended_on").with_columns(first=pl.Series(first))
    for (day,), day_runs in placed.partition_by("ended_on", as_dict=True).items():
        of_day = context.scan(SAMPLES).filter(pl.col("ended_on") == day).select(*key, "sample_bytes_per_s")
        samples = day_runs.lazy().join(of_day, on=key, how="inner").collect()
        rates = ragged(samples["sample_bytes_per_s"])
        places = places_of(samples["first"].to_numpy(), rates.counts)
        is_known = np.isfinite(rates.values)
        volume[places[is_known]] = rates.values[is_known] * interval_s
    return volume


def _plainly(sets: SampleSets, settings: SignatureSettings) -> list[Signature]:
    """Extract the plain signature of each set by its best method in the settings; the sets may be halves."""
    params = replace(get_params(settings), min_run_count=_MIN_HALF_RUNS)
    answers = extract_signatures(sets, params, settings.methods)
    by_method = {answer.method: answer.signatures for answer in answers}
    return [by_method[name][place] for place, name in enumerate(select_methods(answers))]


def _rows(
    context: StepContext, runs: pl.DataFrame, traffic: _Traffic, joint_result: JointResult
) -> dict[str, pl.DataFrame]:
    """Return the rows of each table for the accepted joint signatures."""
    accepted = {
        name
        for name, is_better in zip(traffic.applications, joint_result.is_accepted.tolist(), strict=True)
        if is_better
    }
    # a joint fit needs shared traffic
    rows = runs.filter(pl.col("application_id").is_in(list(accepted))).with_columns(source=pl.lit("server"))
    subjects = rows.group_by(SUBJECT, maintain_order=True).agg(count=pl.len())
    offsets = offsets_of(subjects["count"].to_numpy())
    places = [traffic.applications.index(name) for name in subjects["application_id"]]
    answer = MethodSignatures(
        METHOD,
        [joint_result.signatures[place] for place in places],
        ~outliers.select_typical_runs(rows["duration_s"].to_numpy(), offsets),
        joint_result.expected_correlation[places],
        _count_missing_bursts(traffic.shared, joint_result, places),
    )
    return plain.build_rows(context, rows, subjects, [answer], get_params(context.settings.signatures))


def _count_missing_bursts(shared: SharedTraffic, joint_result: JointResult, places: Sequence[int]) -> Reals:
    """Count the bursts that each signature lacks although most runs have them, in samples with interference."""
    sets = shared.make_sample_sets(shared.cut_samples(shared.volume_bytes))
    counts = np.full(len(places), np.nan)
    for number, place in enumerate(places):
        sample_set = sets.get_set(place)
        typical = sample_set.select_runs(
            outliers.select_typical_runs(sample_set.duration_s, np.array([0, sample_set.run_count]))
        )
        if (summary := RunSummary.from_set(typical)) is not None:
            counts[number] = summary.count_missing_bursts(joint_result.signatures[place])
    return counts


STEP = Step(
    "signatures",
    make_signatures,
    reads=(
        read_built(SAMPLE_SETS),
        read_in_chunks(STALE_SAMPLES),
        read_live(SAMPLES, EXACT_SAMPLES, JOBS),
        read_released(SAMPLE_SETS, *MADE),
    ),
    writes=MADE,
    days=lambda run: run.plan.job_days,
    chunks=plain.divide,
    chunk_function=plain.extract_signatures,
)
