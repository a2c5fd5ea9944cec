"""Tables of signatures, the common I/O pattern of an application's runs, and of their comparison with measured runs."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.metrics import add_operations
from iosig.warehouse.contracts.types import Column, Table

_METHOD_OF_SIGNATURE = Column(
    "method",
    "text",
    (
        "Estimation method. Methods of iosig: elastic alignment of runs (elastic), alignment at each burst (robust), "
        "or scaling of runs to one duration (time_normalized). From the literature: IOSI as published (iosi), with "
        "filters of iosig (iosi_filtered) and without its preprocessing (iosi_raw), dynamic time warping (dtw), and "
        "mean, median or 35 % quantile of the preprocessed samples. joint: fitted together with the signatures of "
        "other applications, used if it predicts held-out runs better."
    ),
    choices=(
        "elastic",
        "robust",
        "time_normalized",
        "iosi",
        "iosi_filtered",
        "iosi_raw",
        "dtw",
        "mean",
        "median",
        "quantile",
        "joint",
    ),
)
#: columns that identify a signature by application, file system, direction, metric and method
_MADE = (c.APPLICATION_ID, c.FILESYSTEM, c.DIRECTION, c.METRIC, _METHOD_OF_SIGNATURE)
_KEY = tuple(column.name for column in _MADE)
#: those of a signature of bytes
_MADE_OF_BYTES = tuple(column for column in _MADE if column != c.METRIC)

SIGNATURES = Table(
    name="signatures",
    layer="transforms",
    grain="one row per application, file system, direction, metric and method",
    key=_KEY,
    columns=add_operations(
        *_MADE,
        c.IS_DEFAULT,
        Column(
            "outcome",
            "text",
            (
                "Whether a signature was extracted, or the reason why not: too few runs (too_few_samples), no bytes "
                "moved (no_io), or no bursts in common (no_common_bursts)."
            ),
            choices=("extracted", "too_few_samples", "no_io", "no_common_bursts"),
        ),
        c.SOURCE.optional(),
        c.SAMPLE_COUNT,
        Column("used_sample_count", "int", "Samples used for the signature."),
        Column("outlier_job_ids", "text", "Jobs with excluded samples, as a JSON list."),
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
            (
                "Significant bursts of most runs that the signature lacks (red in its figure). NULL with too few runs, "
                "with runs without bytes, and in older releases."
            ),
            nullable=True,
        ),
        Column(
            "background_bytes_per_s",
            "real",
            (
                "Constant background rate of other jobs, which the signature excludes; NULL if the method does not "
                "estimate it."
            ),
            nullable=True,
        ),
        Column(
            "is_changed",
            "bool",
            (
                "Whether the signature differs from that of the previous release by more than the settings allow; NULL "
                "without a previous one."
            ),
            nullable=True,
        ),
        Column(
            "change_correlation",
            "real",
            "Correlation coefficient with the signature of the previous release.",
            nullable=True,
        ),
        Column(
            "relative_volume_change",
            "real",
            "Volume divided by that of the previous release's signature, minus 1.",
            unit="1",
            low=-1,
            nullable=True,
        ),
        Column("added_burst_count", "int", "Bursts that the previous release did not have.", nullable=True),
        Column("removed_burst_count", "int", "Bursts that only the previous release had.", nullable=True),
        c.METHOD_PARAMETERS,
    ),
)

SIGNATURE_POINTS = Table(
    name="signature_points",
    layer="transforms",
    grain="one row per second of a signature",
    key=(*_KEY, "offset_s"),
    columns=add_operations(
        *_MADE,
        Column("offset_s", "real", "The left edge of the second, since the run's start.", low=0),
        c.BYTES_PER_S,
        Column("low_bytes_per_s", "real", "Lower bound of the band; NULL if the method has none.", nullable=True),
        Column("high_bytes_per_s", "real", "Upper bound of the band; NULL if the method has none.", nullable=True),
    ),
    bucketed_by="application_id",
)

SIGNATURE_CURVES = Table(
    name="signature_curves",
    layer="transforms",
    grain="one row per extracted default signature, and whether its released result is kept",
    key=("application_id", "filesystem", "direction", "metric"),
    columns=(
        c.APPLICATION_ID,
        c.FILESYSTEM,
        c.DIRECTION,
        c.METRIC,
        Column("curve_per_s", "reals", "Rate in each second, in the metric.", low=0),
        Column("is_kept", "bool", "Whether the base release has the same signature, and a result for it."),
    ),
    is_published=False,
)

SIGNATURE_BURSTS = Table(
    name="signature_bursts",
    layer="transforms",
    grain="one row per burst of a signature",
    key=(*_KEY, "burst"),
    columns=add_operations(
        *_MADE,
        c.BURST,
        Column("start_s", "real", "When it starts, since the run's start.", low=0),
        Column("peak_s", "real", "When its rate is highest, since the run's start.", low=0),
        Column("end_s", "real", "When it ends, since the run's start.", low=0),
        c.VOLUME_BYTES,
        Column(
            "support_ratio",
            "real",
            "Share of the used samples with the burst; NULL if the method does not determine it.",
            nullable=True,
        ),
    ),
)

INFERENCE_BURSTS = replace(
    SIGNATURE_BURSTS,
    name="inference_bursts",
    grain="one row per burst of a default signature that is used for a run of the day",
    is_published=False,
)

_CROSS_CORRELATION = Column(
    "cross_correlation",
    "real",
    "Normalized cross-correlation of the signature with the run's I/O, at the best shift.",
    nullable=True,
)
_CORRELATION = Column(
    "correlation", "real", "Correlation coefficient of the signature with the run's I/O.", nullable=True
)
_MISSED = Column("missed_burst_count", "int", "Bursts of the run that the signature lacks.")
_FALSE = Column("false_burst_count", "int", "Bursts of the signature that the run lacks.")

SIGNATURE_CHECKS = Table(
    name="signature_checks",
    layer="transforms",
    grain="one row per signature and traced run of its application",
    key=(*(column.name for column in _MADE_OF_BYTES), "trace_id"),
    columns=(
        *_MADE_OF_BYTES,
        c.TRACE_ID,
        c.IS_USED.optional(),
        _CROSS_CORRELATION,
        _CORRELATION,
        c.VOLUME_BYTES,
        c.TRACED_BYTES,
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

TRACED_PAIRS = Table(
    name="traced_pairs",
    layer="transforms",
    grain="one row per signature and traced run of its application",
    key=(*_KEY, "trace_id"),
    columns=(c.TRACE_ID, *_MADE, c.IS_USED),
    is_published=False,
)

EXACT_CHECKS = Table(
    name="exact_checks",
    layer="transforms",
    grain="one row per run, file system and direction with complete counters and a signature of its application",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        *_MADE_OF_BYTES,
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
