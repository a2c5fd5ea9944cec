"""Tables of periods: the time between repetitions of a subject's I/O, with its uncertainty."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.metrics import add_operations
from iosig.warehouse.contracts.types import Column, Table

_METHOD = Column(
    "method",
    "text",
    (
        "Detection method: search with tests against a null model (null_tested); FTIO's discrete Fourier transform "
        "(dft), its autocorrelation, and the combination of both (merged); AUTOPERIOD."
    ),
    choices=("null_tested", "dft", "autocorrelation", "merged", "autoperiod"),
)
_KEY = ("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "metric", "method")
_PERIOD_ERROR_S = Column(
    "period_error_s",
    "real",
    (
        "Standard error of the period: the larger of the error by noise and the jackknife error over cycles of the "
        "frequency with the sharpest profile; if the phase wanders, the error of the mean distance. Widened for few "
        "cycles, so that about 68 % of the true periods lie within it. NULL if the method has none."
    ),
    low=0,
    nullable=True,
)
_BURST_WIDTH_S = Column(
    "burst_width_s",
    "real",
    (
        "Duration of a burst of the period, with the resolution of a sample: median of the phases above half of a "
        "burst's height, if there is about one per cycle, else the time above half height of the mean cycle. NULL if "
        "the method does not detect bursts."
    ),
    low=0,
    nullable=True,
)
_DUTY_RATIO = Column(
    "duty_ratio",
    "real",
    "Duty cycle: burst_width_s divided by the period.",
    nullable=True,
)

PERIODS = Table(
    name="periods",
    layer="transforms",
    grain="one row per job, series, trace or application, file system, direction, metric and method",
    key=_KEY,
    columns=add_operations(
        *c.JUDGED,
        _METHOD,
        c.IS_DEFAULT,
        Column(
            "outcome",
            "text",
            (
                "Whether a period was detected, or the reason why not: no period (aperiodic), too few samples or "
                "cycles (too_short), no bytes moved (no_io), no measurement (no_data), too many missing values "
                "(too_many_gaps), bytes known only from counters (interval_only), or a trace without the size of "
                "every request (unknown_sizes). For runs without their own measurement: the application has no "
                "signature (no_signature), or the signature's expected correlation is below the threshold "
                "(unreliable_signature)."
            ),
            choices=(
                "periodic",
                "aperiodic",
                "too_short",
                "no_io",
                "no_data",
                "too_many_gaps",
                "interval_only",
                "unknown_sizes",
                "no_signature",
                "unreliable_signature",
            ),
        ),
        c.WINDOW_START_S.optional(),
        c.WINDOW_END_S.optional(),
        c.SAMPLING_HZ.optional(),
        Column(
            "sampling",
            "text",
            "What a sample holds: the rate at its start, as in FTIO's paper (instants), the mean rate of its step "
            "(bins), or that of an interval as measured, at uneven times (intervals).",
            nullable=True,
            choices=("instants", "bins", "intervals"),
        ),
        c.SAMPLE_COUNT_OF_SIGNAL.optional(),
        c.MISSING_RATIO.optional(),
        c.FREQUENCY_HZ.optional(),
        c.PERIOD_S.optional(),
        _PERIOD_ERROR_S,
        Column(
            "window_bytes_ratio",
            "real",
            (
                "Share of the signal's bytes within the window of the period. NULL if the method does not search for a "
                "window."
            ),
            nullable=True,
        ),
        _BURST_WIDTH_S,
        _DUTY_RATIO,
        c.CONFIDENCE.optional(),
        Column(
            "refined_confidence",
            "real",
            "FTIO's (c_d + c_a + c_s) / 3: confidence of both methods and their agreement.",
            nullable=True,
        ),
        Column(
            "candidates",
            "reals",
            "Candidate frequencies, best first; for AUTOPERIOD and null_tested, further valid periods.",
            unit="Hz",
            low=0,
            nullable=True,
        ),
        Column(
            "candidate_amplitudes_bytes_per_s",
            "reals",
            "Amplitude of each candidate's cosine, NULL if the method has none.",
            nullable=True,
        ),
        Column(
            "candidate_phases_rad",
            "reals",
            "Phase of each candidate's cosine at the signal's first sample, NULL if the method has none.",
            unit="rad",
            nullable=True,
        ),
        c.MEAN_BYTES_PER_S.optional(),
        Column(
            "r_io",
            "real",
            "Share of the time with substantial I/O (rate above its mean).",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column("b_io_bytes_per_s", "real", "Mean rate during substantial I/O.", nullable=True),
        Column(
            "sigma_vol",
            "real",
            "Standard deviation of the periods' volumes, divided by the largest of them.",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column(
            "sigma_time",
            "real",
            "Deviation of the periods' shares of substantial I/O from r_io.",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column(
            "periodicity_score",
            "real",
            "Similarity of the periods: 1 - sigma_vol - sigma_time, at least 0.",
            low=0,
            high=1,
            nullable=True,
        ),
        Column("bytes_per_period", "real", "Bytes of substantial I/O in one period.", unit="B", low=0, nullable=True),
        Column(
            "abstraction_error",
            "real",
            "Relative difference between the samples' volume and the bytes moved.",
            unit="1",
            low=0,
            nullable=True,
        ),
        c.FALSE_ALARM_PROBABILITY.optional(),
        c.METHOD_PARAMETERS.optional(),
    ),
    partition="ended_on",
)

#: measured periods, before those of all other runs are inferred
MEASURED_PERIODS = replace(
    PERIODS,
    name="measured_periods",
    grain="one row per counted job, series, trace or application, file system, direction, metric and method",
    is_published=False,
)

#: columns that runs inherit from the period of their application
OF_AN_APPLICATION = (
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
INFERENCE_RUNS = Table(
    name="inference_runs",
    layer="transforms",
    grain="one row per run of a day, file system, direction and metric, with its signature's result",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "metric"),
    columns=(
        c.ENDED_ON.optional(),
        c.APPLICATION_ID.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        c.METRIC,
        c.DURATION_S.optional(),
        c.NODE_COUNT.optional(),
        c.EXPECTED_CORRELATION.optional(),
        Column("alone_s", "real", "Duration of the signature.", nullable=True),
        Column("signature_bytes", "real", "Bytes of the signature in bytes.", nullable=True),
        c.EXPLAINED_BYTES.optional(),
        Column(
            "refusal",
            "text",
            (
                "Why the signature gives no result: it does not exist, or its expected correlation is below the "
                "threshold. NULL with a result."
            ),
            choices=("no_signature", "unreliable_signature"),
            nullable=True,
        ),
        c.IS_USED,
        *(PERIODS.column(name).optional() for name in OF_AN_APPLICATION),
    ),
    is_published=False,
)
INFERRED_PERIODS = replace(
    PERIODS,
    name="inferred_periods",
    grain="one row per run that ended on the day, file system, direction and metric",
    is_published=False,
)

PERIOD_SEGMENTS = Table(
    name="period_segments",
    layer="transforms",
    grain=(
        "one row per interval in which a measured period holds: one or more per periodic row of `periods` with a "
        "basis other than inferred, except jobs with the result of their trace"
    ),
    key=(*_KEY, "segment"),
    columns=add_operations(
        *c.JUDGED,
        _METHOD,
        Column(
            "segment",
            "int",
            (
                "Number of the segment within its key, from 1 in order of time. Simultaneous periods have overlapping "
                "segments. Methods that analyze a signal as a whole have no segments."
            ),
            low=1,
        ),
        Column("is_main", "bool", "Whether it is the segment in `periods`: the one with most bytes."),
        c.WINDOW_START_S,
        c.WINDOW_END_S,
        c.FREQUENCY_HZ,
        c.PERIOD_S,
        _PERIOD_ERROR_S,
        c.CONFIDENCE,
        Column(
            "segment_bytes",
            "real",
            "Bytes moved in the segment, without bursts of other periods that were removed before.",
        ),
        _BURST_WIDTH_S,
        _DUTY_RATIO,
        c.FALSE_ALARM_PROBABILITY,
    ),
    partition="ended_on",
)

#: rows of the base release that are still valid
KEPT_PERIODS = replace(PERIODS, name="kept_periods", is_published=False)
KEPT_SEGMENTS = replace(
    PERIOD_SEGMENTS,
    name="kept_segments",
    grain="one row per interval in which a period of `kept_periods` holds",
    is_published=False,
)

#: outcomes, and columns of the period, of the method `null_tested`, for tables with one row per signal
_CONTROLLED_OUTCOMES = ("periodic", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps")
_PERIOD = (
    c.WINDOW_START_S,
    c.WINDOW_END_S,
    c.SAMPLING_HZ,
    c.FREQUENCY_HZ.optional(),
    c.PERIOD_S.optional(),
    _PERIOD_ERROR_S,
)

NODE_PERIODS = Table(
    name="node_periods",
    layer="transforms",
    grain="one row per traced run of several nodes with known nodes of its requests, direction and node",
    key=("trace_id", "direction", "host"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.DIRECTION,
        c.HOST,
        Column(
            "outcome",
            "text",
            "Whether the node alone has a period, or the reason why not; as in `periods` with method null_tested.",
            choices=_CONTROLLED_OUTCOMES,
        ),
        Column("node_bytes", "real", "Bytes moved by the node."),
        *_PERIOD,
        c.CONFIDENCE.optional(),
        c.FALSE_ALARM_PROBABILITY.optional(),
        Column(
            "lag_s",
            "real",
            (
                "Lag of the node's bursts behind the run's, at the run's period (`periods`, method null_tested) and "
                "within its window: from minus to plus half a period. NULL if the run has no period."
            ),
            nullable=True,
        ),
        Column(
            "concentration_ratio",
            "real",
            (
                "Concentration of the node's bytes within the run's cycle: 0 is uniform, 1 is a single time. If it is "
                "low, the lag is unreliable."
            ),
            nullable=True,
        ),
    ),
    partition="ended_on",
)

KEPT_NODES = replace(
    NODE_PERIODS,
    name="kept_nodes",
    grain="one row per traced run of `kept_periods`, direction and node",
    is_published=False,
)

#: columns of a period of operation counts, in one row for all segments
_METADATA_PERIOD = (
    *_PERIOD,
    Column(
        "window_call_ratio",
        "real",
        "Share of the calls within the window of the period.",
        nullable=True,
    ),
    _BURST_WIDTH_S,
    _DUTY_RATIO,
    c.CONFIDENCE.optional(),
    c.FALSE_ALARM_PROBABILITY.optional(),
    Column(
        "segment_starts_s",
        "reals",
        (
            "Starts of the segments in which a period holds, in order of time; the row's period is that of the segment "
            "with most calls. NULL without a period."
        ),
        nullable=True,
    ),
    Column("segment_ends_s", "reals", "Ends of the segments.", nullable=True),
    Column("segment_periods_s", "reals", "Period of each segment.", low=0, nullable=True),
)

METADATA_PERIODS = Table(
    name="metadata_periods",
    layer="transforms",
    grain="one row per traced run and kind of its metadata calls, if the trace has their times",
    key=("trace_id", "operation_group"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        Column(
            "operation_group",
            "text",
            "Kind of the calls to files, or all kinds.",
            choices=("all", *c.METADATA_OPERATIONS),
        ),
        Column(
            "outcome",
            "text",
            (
                "Whether the calls have a period, or the reason why not; as in `periods` with method null_tested. Each "
                "call counts once, at its start, regardless of its duration."
            ),
            choices=_CONTROLLED_OUTCOMES,
        ),
        Column(
            "metadata_call_count",
            "int",
            "Number of such calls of all ranks, without calls nested within other file calls.",
        ),
        *_METADATA_PERIOD,
    ),
    partition="ended_on",
)

METADATA_SPANS = Table(
    name="metadata_spans",
    layer="samples",
    grain="one row per traced run with metadata calls, with its duration",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        Column("lasting_s", "real", "Duration of the run, at least to its last call.", low=0),
    ),
    is_published=False,
)

METADATA_GRIDS = Table(
    name="metadata_grids",
    layer="samples",
    grain="one row per traced run with metadata calls, with the grid of their counts",
    key=("trace_id",),
    columns=(c.ENDED_ON.optional(), c.TRACE_ID, c.INTERVAL_S, c.STEP_COUNT),
    is_published=False,
)

METADATA_STEPS = Table(
    name="metadata_steps",
    layer="samples",
    grain="one row per traced run, kind of metadata calls and grid step with starts of such calls",
    key=("trace_id", "operation_group", "call_step"),
    columns=(
        c.TRACE_ID,
        METADATA_PERIODS.column("operation_group"),
        Column("call_step", "int", "The step of the run's grid, from 0.", low=0),
        METADATA_PERIODS.column("metadata_call_count"),
    ),
    is_published=False,
)

METADATA_RATES = Table(
    name="metadata_rates",
    layer="transforms",
    grain="one row per application run and file system with counters of metadata operations by job",
    key=("cluster", "job_id", "started_at", "filesystem"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        Column("is_complete", "bool", "Whether the counts are complete and belong to the run alone."),
        c.METADATA_OPERATION_COUNT,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SAMPLE_OPERATIONS_PER_S,
        Column(
            "class_outcome",
            "text",
            "Whether the run has a class, or the reason why not; as in `classes`.",
            choices=("classified", "too_short", "no_data", "too_many_gaps"),
        ),
        c.LABEL.optional(),
        c.SECTION_OPERATIONS.optional(),
        c.CV.optional(),
        c.MISSING_RATIO.optional(),
        Column(
            "outcome",
            "text",
            "Whether the operations have a period, or the reason why not; as in `periods` with method null_tested.",
            choices=_CONTROLLED_OUTCOMES,
        ),
        *_METADATA_PERIOD,
    ),
    partition="ended_on",
)
