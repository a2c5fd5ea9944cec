"""Signatures: the common I/O pattern of an application's runs, and its comparison with traced and counted runs."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_METHOD_OF_SIGNATURE = Column(
    "method",
    "text",
    "How the signature was made: our own estimators, which shift runs along their way to where they overlap (elastic), "
    "align them at each burst (robust), or bring them to one duration (time_normalized); IOSI as published (iosi), and "
    "without its preprocessing (iosi_raw); dynamic time warping (dtw); the mean, median or 35 % quantile of the "
    "preprocessed samples. Found together with those of other applications, from samples less what these explain "
    "(joint), where runs that were held out are predicted better.",
    choices=("elastic", "robust", "time_normalized", "iosi", "iosi_raw", "dtw", "mean", "median", "quantile", "joint"),
)
#: application and method of a signature
_MADE = (c.APPLICATION_ID, c.FILESYSTEM, c.DIRECTION, _METHOD_OF_SIGNATURE)
_KEY = tuple(column.name for column in _MADE)

SIGNATURES = Table(
    name="signatures",
    layer="transforms",
    grain="one row per application, file system, direction and method",
    key=_KEY,
    columns=(
        *_MADE,
        c.IS_DEFAULT,
        Column(
            "outcome",
            "text",
            "Whether there is a signature, and if not, why: fewer runs than it takes (too_few_samples), nothing was "
            "moved (no_io), or no burst is common to the runs (no_common_bursts).",
            choices=("extracted", "too_few_samples", "no_io", "no_common_bursts"),
        ),
        c.SAMPLE_COUNT,
        Column("used_sample_count", "int", "Samples of the set that the signature is made of."),
        Column("outlier_job_ids", "text", "The jobs whose samples were left out, as a JSON list."),
        c.FIRST_RUN_STARTED_AT,
        c.LAST_RUN_ENDED_AT,
        c.DURATION_S.optional(),
        Column("burst_count", "int", "Bursts of the signature.", nullable=True),
        c.VOLUME_BYTES.optional(),
        c.PEAK_BYTES_PER_S.optional(),
        c.EXPECTED_CORRELATION.optional(),
        Column(
            "missing_burst_count",
            "int",
            "Bursts that most runs have and the signature lacks, as chance would hardly have it: red in its picture. "
            "NULL where there are too few runs or they moved nothing, or in releases that did not tell.",
            nullable=True,
        ),
        Column(
            "background_bytes_per_s",
            "real",
            "The rate of what others do all the time, which is not in the signature; NULL where the method does not "
            "estimate it.",
            nullable=True,
        ),
        Column(
            "is_changed",
            "bool",
            "Whether the signature differs from that of the release before by more than the settings allow; NULL "
            "where there was none.",
            nullable=True,
        ),
        Column(
            "change_correlation",
            "real",
            "Correlation coefficient with the signature of the release before.",
            nullable=True,
        ),
        Column(
            "relative_volume_change",
            "real",
            "Volume over that of the signature of the release before, less 1.",
            unit="1",
            low=-1,
            nullable=True,
        ),
        Column("added_burst_count", "int", "Bursts that the release before did not have.", nullable=True),
        Column("removed_burst_count", "int", "Bursts that only the release before had.", nullable=True),
        Column("method_parameters", "text", "The method's parameters, as JSON."),
    ),
)

SIGNATURE_POINTS = Table(
    name="signature_points",
    layer="transforms",
    grain="one row per second of a signature",
    key=(*_KEY, "offset_s"),
    columns=(
        *_MADE,
        Column("offset_s", "real", "The left edge of the second, since the run's start.", low=0),
        c.BYTES_PER_S,
        Column(
            "low_bytes_per_s", "real", "The lower edge of the band; NULL where the method gives none.", nullable=True
        ),
        Column(
            "high_bytes_per_s", "real", "The upper edge of the band; NULL where the method gives none.", nullable=True
        ),
    ),
    bucketed_by="application_id",
)

SIGNATURE_CURVES = Table(
    name="signature_curves",
    layer="transforms",
    grain="one row per extracted default signature, and whether its released answer is kept",
    key=("application_id", "filesystem", "direction"),
    columns=(
        c.APPLICATION_ID,
        c.FILESYSTEM,
        c.DIRECTION,
        Column("curve_bytes_per_s", "reals", "Rate in each second."),
        Column("is_kept", "bool", "Whether the base release has the same signature, and an answer for it."),
    ),
    is_published=False,
)

SIGNATURE_BURSTS = Table(
    name="signature_bursts",
    layer="transforms",
    grain="one row per burst of a signature",
    key=(*_KEY, "burst"),
    columns=(
        *_MADE,
        c.BURST,
        Column("start_s", "real", "When it starts, since the run's start.", low=0),
        Column("peak_s", "real", "When its rate is highest, since the run's start.", low=0),
        Column("end_s", "real", "When it ends, since the run's start.", low=0),
        c.VOLUME_BYTES,
        Column(
            "support_ratio",
            "real",
            "The share of the used samples that have the burst; NULL where the method does not ask.",
            nullable=True,
        ),
    ),
)

INFERENCE_BURSTS = replace(
    SIGNATURE_BURSTS,
    name="inference_bursts",
    grain="one row per burst of a default signature that answers for a run of the day",
    is_published=False,
)

_CROSS_CORRELATION = Column(
    "cross_correlation",
    "real",
    "Normalized cross-correlation of the signature with what the run moved, at the best shift.",
    nullable=True,
)
_CORRELATION = Column(
    "correlation", "real", "Correlation coefficient of the signature with what the run moved.", nullable=True
)
_MISSED = Column("missed_burst_count", "int", "Bursts of the run that the signature lacks.")
_FALSE = Column("false_burst_count", "int", "Bursts of the signature that the run lacks.")

SIGNATURE_CHECKS = Table(
    name="signature_checks",
    layer="transforms",
    grain="one row per signature and traced run of its application",
    key=(*_KEY, "trace_id"),
    columns=(
        *_MADE,
        c.TRACE_ID,
        _CROSS_CORRELATION,
        _CORRELATION,
        c.VOLUME_BYTES,
        Column("traced_bytes", "real", "What the traced run moved."),
        _MISSED,
        _FALSE,
    ),
)

EXACT_PAIRS = Table(
    name="exact_pairs",
    layer="transforms",
    grain="one row per exact sample of a run, with the default signature of its application",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        *_MADE,
        c.IS_USED,
        c.VOLUME_BYTES,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.SAMPLE_BYTES_PER_S,
    ),
    is_published=False,
)

TRACED_APPLICATIONS = Table(
    name="traced_applications",
    layer="transforms",
    grain="one row per traced run of an application that has a signature",
    key=("trace_id", "application_id"),
    columns=(c.TRACE_ID, c.APPLICATION_ID),
    is_published=False,
)

EXACT_CHECKS = Table(
    name="exact_checks",
    layer="transforms",
    grain="one row per run, file system and direction of which servers counted all, whose application has a signature",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        *_MADE,
        c.IS_USED,
        _CROSS_CORRELATION,
        _CORRELATION,
        c.VOLUME_BYTES,
        c.EXACT_BYTES,
        _MISSED,
        _FALSE,
    ),
    partition="ended_on",
)
