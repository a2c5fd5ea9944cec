"""Inference: the class and period of every run, measured where its own bytes are known, else inferred.

The answer of a run is that of its own bytes: counted by servers, or traced. Of the other runs only the traffic of the
whole file system is known, which says nothing of a single run: they get the answer of their application's signature, or
the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from iosig.estimates.periods import DEFAULT_METHOD
from iosig.estimates.subjects import keys_of
from iosig.flows.steps.exact_checks import with_use
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, built, built_on, undated
from iosig.transforms import inference
from iosig.transforms.classes import ClassParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.classes import CLASSES, MEASURED_CLASSES
from iosig.warehouse.contracts.inference import INFERENCE_CHECKS
from iosig.warehouse.contracts.job_io import CLIENT_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.periods import MEASURED_PERIODS, PERIODS
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, SAMPLE_SETS, SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS

_RUN = ["cluster", "job_id", "started_at", "filesystem", "direction"]
_SUBJECT = ["application_id", "filesystem", "direction"]
#: a trace that covers less of its run is that of a part of it
_MIN_TRACED_RATIO = 0.9
#: what a trace may lack
_UNKNOWN = ("interval_only", "unknown_sizes", "no_data", "too_many_gaps")
_OF_A_PERIOD = (
    "outcome",
    "frequency_hz",
    "period_s",
    "period_error_s",
    "burst_width_s",
    "duty_ratio",
    "window_start_s",
    "window_end_s",
    "confidence",
    "false_alarm_probability",
)


def infer(context: StepContext) -> int:
    """Complete the classes and periods of a day with those of runs that were not measured. Returns the classes."""
    classes, every_period = context.frame(MEASURED_CLASSES), context.frame(MEASURED_PERIODS)
    periods = every_period.filter(pl.col("ended_on").eq_missing(pl.lit(context.days[0], pl.Date)))
    runs = _runs(context)
    if runs.height:
        traces = _traces_of(context, runs)
        classes, periods = (_with_traced(measured, runs, traces) for measured in (classes, periods))
        inferred_classes = _classes(context, runs)
        inferred_periods = _periods(runs, every_period.filter("is_default", subject_kind="application"))
        context.write_days(
            _checks(context, runs, (classes, periods), (inferred_classes, inferred_periods)), INFERENCE_CHECKS
        )
        classes, periods = (
            pl.concat([measured, _unmeasured(inferred, measured)])
            for measured, inferred in ((classes, inferred_classes), (periods, inferred_periods))
        )
    context.write_days(classes.sort(CLASSES.key), CLASSES)
    context.write_days(periods.sort(PERIODS.key), PERIODS)
    return classes.height


def _runs(context: StepContext) -> pl.DataFrame:
    """Return the runs of a day on each file system and in each direction, with what is known of their signatures."""
    sampled = pl.concat(
        context.scan(table).select("ended_on", "application_id", *_RUN) for table in (SAMPLES, EXACT_SAMPLES)
    )
    jobs = context.frame(JOBS).select("cluster", "job_id", "started_at", "duration_s", "node_count")
    signatures = (
        context.frame(SIGNATURES)
        .filter("is_default")
        .select(
            *_SUBJECT,
            "method",
            "trust",
            "outlier_job_ids",
            signature_outcome="outcome",
            alone_s="duration_s",
            signature_bytes="volume_bytes",
        )
    )
    explained = context.scan(ATTRIBUTED_IO).group_by(_RUN).agg(pl.col("explained_bytes").sum()).collect()
    # the traffic was searched for the runs that have a cut sample
    searched = context.scan(SAMPLES).select(*_RUN, is_searched=pl.lit(value=True)).collect()
    return (
        sampled.collect()
        .unique(_RUN)
        .join(jobs, on=["cluster", "job_id", "started_at"], how="left")
        .join(signatures, on=_SUBJECT, how="left")
        .join(explained, on=_RUN, how="left")
        .join(searched, on=_RUN, how="left")
        .with_columns(refusal=_refusal(context.settings.signatures.min_expected_correlation))
        .with_columns(
            explained_bytes=pl.when(pl.col("refusal").is_null(), "is_searched").then(
                pl.col("explained_bytes").fill_null(0.0)
            )
        )
        .sort(_RUN)
    )


def _refusal(min_expected_correlation: float) -> pl.Expr:
    """Return why a signature gives no answer, NULL where it does; that of an idle application needs no trust."""
    is_trusted = (pl.col("trust") >= min_expected_correlation).fill_null(value=False)
    is_known = pl.col("signature_outcome").is_in(["extracted", "no_io"]).fill_null(value=False)
    return (
        pl.when(~is_known)
        .then(pl.lit("no_signature"))
        .when((pl.col("signature_outcome") == "extracted") & ~is_trusted)
        .then(pl.lit("untrusted_signature"))
    )


# ---- inferred answers


def _classes(context: StepContext, runs: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `classes`: the inferred class of every run."""
    key = [*_SUBJECT, "method"]
    bursts = (
        context.scan(SIGNATURE_BURSTS)
        .join(runs.lazy().filter(pl.col("refusal").is_null()), on=key, how="semi")
        .sort(*key, "started_s")
        .collect()
    )
    found = inference.inferred_classes(runs, bursts, context.settings.classes.params(ClassParams))
    is_refused = runs["refusal"].is_not_null() & (found["outcome"] == "classified")
    answered = found.with_columns(
        outcome=pl.when(is_refused).then(runs["refusal"]).otherwise("outcome"),
        # what a run moved is said by job_io alone
        volume_bytes=pl.lit(None, pl.Float64),
        missing_ratio=pl.lit(None, pl.Float64),
    ).with_columns(pl.when(pl.col("outcome") == "classified").then(pl.col("label", "section_bytes", "cov")))
    return pl.concat(
        [_inferred_keys(runs), answered, runs.select("node_count", "duration_s")], how="horizontal"
    ).select(CLASSES.column_names)


def _periods(runs: pl.DataFrame, of_applications: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `periods`: the inferred period of every run.

    of_applications: the default rows of `periods` of applications.
    """
    known = of_applications.rename({"subject_id": "application_id"}).select(*_SUBJECT, *_OF_A_PERIOD)
    joined = runs.join(known, on=_SUBJECT, how="left", maintain_order="left").with_columns(
        outcome=pl.coalesce("refusal", "outcome", pl.lit("no_io"))
    )
    found = inference.inferred_periods(joined)
    is_periodic = pl.col("outcome") == "periodic"
    answered = found.select(*_OF_A_PERIOD, method=pl.lit(DEFAULT_METHOD), is_default=pl.lit(value=True)).with_columns(
        pl.when(is_periodic).then("duty_ratio")
    )
    return frames.widened(pl.concat([_inferred_keys(runs), answered], how="horizontal"), PERIODS)


def _inferred_keys(runs: pl.DataFrame) -> pl.DataFrame:
    return keys_of("job", runs, subject_id=pl.col("job_id"), basis=pl.lit("inferred"))


def _unmeasured(inferred: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    """Return the inferred answers of runs that have no measured one."""
    of_jobs = measured.filter(subject_kind="job")
    return inferred.join(of_jobs, on=["cluster", "subject_id", *_RUN[2:]], how="anti", maintain_order="left")


# ---- traced runs


def _traces_of(context: StepContext, runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that one trace covers, on the one file system that it used: `_RUN` and `trace_id`."""
    moved = context.frame(CLIENT_IO).filter(pl.col("filesystem").is_not_null())
    per_trace = moved.with_columns(
        filesystem_count=pl.col("filesystem").n_unique().over("trace_id"),
        trace_count=pl.col("trace_id").n_unique().over("cluster", "job_id", "started_at"),
    )
    lasting = context.frame(TRACE_JOBS).select("trace_id", traced_s="duration_s")
    return (
        per_trace.filter(filesystem_count=1, trace_count=1)
        .join(lasting, on="trace_id")
        .join(runs.select(*_RUN, "duration_s"), on=_RUN)
        .filter(pl.col("traced_s") >= _MIN_TRACED_RATIO * pl.col("duration_s"))
        .select(*_RUN, "trace_id")
    )


def _with_traced(measured: pl.DataFrame, runs: pl.DataFrame, traces: pl.DataFrame) -> pl.DataFrame:
    """Return measured answers, and those of traces as the answers of the runs that they cover."""
    of_traces = measured.filter(~pl.col("outcome").is_in(_UNKNOWN), subject_kind="trace").rename(
        {"subject_id": "trace_id"}
    )
    answers = of_traces.drop("cluster", "started_at", "filesystem", "ended_on").join(
        traces, on=["trace_id", "direction"]
    )
    days = runs.select(*_RUN, "ended_on")
    of_runs = (
        answers.join(days, on=_RUN)
        .with_columns(subject_kind=pl.lit("job"), subject_id=pl.col("job_id"))
        .select(measured.columns)
    )
    return pl.concat([measured, _unmeasured(of_runs, measured)])


# ---- agreement


def _checks(
    context: StepContext,
    runs: pl.DataFrame,
    measured: tuple[pl.DataFrame, pl.DataFrame],
    inferred: tuple[pl.DataFrame, pl.DataFrame],
) -> pl.DataFrame:
    """Return rows of `inference_checks`; measured, inferred: classes and periods."""
    trusted = runs.filter(pl.col("refusal").is_null())
    used = with_use(trusted, context.frame(SAMPLE_SETS)).select(*_RUN, "ended_on", "application_id", "trust", "is_used")
    labels = [
        _answers(rows, "label", prefix) for rows, prefix in ((measured[0], "measured"), (inferred[0], "inferred"))
    ]
    periods = [
        _answers(rows.filter("is_default"), "period_s", prefix, ["outcome"])
        for rows, prefix in ((measured[1], "measured"), (inferred[1], "inferred"))
    ]
    joined = used
    for each in (*labels, *periods):
        joined = joined.join(each, on=_RUN, how="left", coalesce=True)
    told = joined.with_columns(
        basis=pl.coalesce("measured_label_basis", "measured_period_s_basis"),
        is_same_class=pl.col("measured_label") == pl.col("inferred_label"),
        period_agreement=inference.period_agreement(joined),
    )
    is_compared = pl.col("is_same_class").is_not_null() | pl.col("period_agreement").is_not_null()
    return told.filter(is_compared).select(INFERENCE_CHECKS.column_names).sort(INFERENCE_CHECKS.key)


def _answers(rows: pl.DataFrame, name: str, prefix: str, more: Sequence[str] = ()) -> pl.DataFrame:
    """Return the answers of runs by `_RUN`, with the basis of measured ones."""
    named = [pl.col(each).alias(f"{prefix}_{each}") for each in (name, *more)]
    basis = [pl.col("basis").alias(f"measured_{name}_basis")] if prefix == "measured" else []
    of_runs = rows.filter(subject_kind="job").rename({"subject_id": "job_id"})
    return of_runs.select(*_RUN, *named, *basis)


STEP = Step(
    "inference",
    infer,
    reads=(
        built(MEASURED_CLASSES, JOBS, SAMPLES, EXACT_SAMPLES, ATTRIBUTED_IO, TRACE_JOBS, CLIENT_IO),
        # those of applications have no day
        built_on(lambda run, day: list(dict.fromkeys([day, None])), MEASURED_PERIODS),
        undated(SIGNATURES, SIGNATURE_BURSTS, SAMPLE_SETS),
    ),
    writes=(CLASSES, PERIODS, INFERENCE_CHECKS),
    days=lambda run: run.plan.judged_days,
    is_daily=True,
)
