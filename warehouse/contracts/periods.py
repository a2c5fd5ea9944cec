"""Periods: how often a subject does its I/O, and how sure that is."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_METHOD = Column(
    "method",
    "text",
    "How the period was sought: our own search, which asks what noise would look like (null_tested); FTIO's "
    "discrete Fourier transform (dft), its autocorrelation, and both together (merged); AUTOPERIOD.",
    choices=("null_tested", "dft", "autocorrelation", "merged", "autoperiod"),
)
_KEY = ("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "method")
_PERIOD_ERROR_S = Column(
    "period_error_s",
    "real",
    "Standard error of the period: of the frequency at which the signal's profile is sharpest, by noise or by how "
    "far it moves as single cycles are left out, whichever is more; or, where its phase wanders, of a mean of so many "
    "distances. Widened for few cycles, so that about 68 of 100 true periods lie within it. NULL where the method has "
    "none.",
    low=0,
    nullable=True,
)
_BURST_WIDTH_S = Column(
    "burst_width_s",
    "real",
    "How long a burst of the period lasts, to a sample: the median of phases above half of a burst's height, where "
    "there is about one to a cycle, else what is above halfway of the mean cycle. NULL where the method does not look "
    "for bursts.",
    low=0,
    nullable=True,
)
_DUTY_RATIO = Column(
    "duty_ratio",
    "real",
    "Share of a cycle that a burst takes: burst_width_s over the period.",
    nullable=True,
)

PERIODS = Table(
    name="periods",
    layer="transforms",
    grain="one row per job, series, traced run or application, file system, direction and method",
    key=_KEY,
    columns=(
        *c.JUDGED,
        _METHOD,
        c.IS_DEFAULT,
        Column(
            "outcome",
            "text",
            "Whether there is a period, and if not, why: the method found none (aperiodic), the signal has too few "
            "samples or cycles for one (too_short), nothing was moved (no_io) or measured (no_data), too much is "
            "missing, counters alone tell of the bytes (interval_only), or the trace does not tell the size of every "
            "request (unknown_sizes). Of a run without a measurement of its own: its application has no signature "
            "(no_signature), or one whose expected correlation is below the threshold (unreliable_signature).",
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
        c.SAMPLE_COUNT_OF_SIGNAL.optional(),
        c.MISSING_RATIO.optional(),
        c.FREQUENCY_HZ.optional(),
        c.PERIOD_S.optional(),
        _PERIOD_ERROR_S,
        Column(
            "window_bytes_ratio",
            "real",
            "Share of the signal's bytes that was moved within the window of the period. NULL where the method does "
            "not look for a window.",
            nullable=True,
        ),
        _BURST_WIDTH_S,
        _DUTY_RATIO,
        c.CONFIDENCE.optional(),
        Column(
            "refined_confidence",
            "real",
            "FTIO's (c_d + c_a + c_s) / 3, of both its methods and how well they agree.",
            nullable=True,
        ),
        Column(
            "candidates",
            "reals",
            "The frequencies that came into question, best first; for AUTOPERIOD and null_tested, further periods that "
            "hold.",
            unit="Hz",
            low=0,
            nullable=True,
        ),
        Column(
            "candidate_amplitudes_bytes_per_s",
            "reals",
            "The amplitude of each candidate's cosine, NULL where the method gives none.",
            nullable=True,
        ),
        Column(
            "candidate_phases_rad",
            "reals",
            "The phase of each candidate's cosine at the signal's first sample, NULL where the method gives none.",
            unit="rad",
            nullable=True,
        ),
        c.MEAN_BYTES_PER_S.optional(),
        Column(
            "r_io",
            "real",
            "Share of the time in which the rate is above its mean: substantial I/O.",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column("b_io_bytes_per_s", "real", "The mean rate while there is substantial I/O.", nullable=True),
        Column(
            "sigma_vol",
            "real",
            "Standard deviation of the periods' volumes, each over the largest of them.",
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
            "How alike the periods are: 1 - sigma_vol - sigma_time, and no less than 0.",
            low=0,
            high=1,
            nullable=True,
        ),
        Column("bytes_per_period", "real", "Bytes of substantial I/O in one period.", unit="B", low=0, nullable=True),
        Column(
            "abstraction_error",
            "real",
            "Distance of the samples' volume from the bytes that were moved, over these.",
            unit="1",
            low=0,
            nullable=True,
        ),
        c.FALSE_ALARM_PROBABILITY.optional(),
    ),
    partition="ended_on",
)

#: measured answers, before those of the other runs are inferred
MEASURED_PERIODS = replace(
    PERIODS,
    name="measured_periods",
    grain="one row per counted job, series, traced run or application, file system, direction and method",
    is_published=False,
)

#: columns of an application's period that its runs take over
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
    grain="one row per run of a day, file system and direction, with what its signature tells",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.APPLICATION_ID.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        c.DURATION_S.optional(),
        c.NODE_COUNT.optional(),
        c.EXPECTED_CORRELATION.optional(),
        Column("alone_s", "real", "How long the signature lasts.", nullable=True),
        Column("signature_bytes", "real", "Bytes of the signature.", nullable=True),
        c.EXPLAINED_BYTES.optional(),
        Column(
            "refusal",
            "text",
            "Why the signature gives no answer: there is none, or its expected correlation is below the threshold; "
            "NULL where it gives one.",
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
    grain="one row per run that ended on the day, file system and direction",
    is_published=False,
)

PERIOD_SEGMENTS = Table(
    name="period_segments",
    layer="transforms",
    grain="one row per interval in which a measured period holds: each periodic row of `periods` whose basis is not "
    "inferred has one or more, except a job whose answer is that of its trace",
    key=(*_KEY, "segment"),
    columns=(
        *c.JUDGED,
        _METHOD,
        Column(
            "segment",
            "int",
            "The segment's number among those of the same key, from 1 in order of time. Segments overlap where there "
            "are several periods at once. Of methods that judge a signal as one there are none.",
            low=1,
        ),
        Column("is_main", "bool", "Whether it is the one that `periods` tells: that with the most bytes."),
        c.WINDOW_START_S,
        c.WINDOW_END_S,
        c.FREQUENCY_HZ,
        c.PERIOD_S,
        _PERIOD_ERROR_S,
        c.CONFIDENCE,
        Column(
            "segment_bytes",
            "real",
            "Bytes moved in the segment, without those in the bursts of another period that were cut out before.",
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

#: outcome and period of the method `null_tested`, for tables with one row per signal
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
    grain="one row per traced run of several nodes whose requests say where they were made, direction and node",
    key=("trace_id", "direction", "host"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.DIRECTION,
        c.HOST,
        Column(
            "outcome",
            "text",
            "Whether the node by itself has a period, and if not, why; as of `periods`, whose method is null_tested.",
            choices=_CONTROLLED_OUTCOMES,
        ),
        Column("node_bytes", "real", "Bytes that the node moved."),
        *_PERIOD,
        c.CONFIDENCE.optional(),
        c.FALSE_ALARM_PROBABILITY.optional(),
        Column(
            "lag_s",
            "real",
            "By how much the node's bursts are later than the run's, at the run's own period (of `periods`, method "
            "null_tested) and within its window: between minus and plus half of it. NULL where the run has none.",
            nullable=True,
        ),
        Column(
            "concentration_ratio",
            "real",
            "How well the node's bytes keep to one time of the run's cycle: 0, they come at any time; 1, all at one. "
            "Where it is low the delay says little.",
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

#: period of counts, in one row for all segments
_METADATA_PERIOD = (
    *_PERIOD,
    Column(
        "window_call_ratio",
        "real",
        "Share of the calls that were made within the window of the period.",
        nullable=True,
    ),
    _BURST_WIDTH_S,
    _DUTY_RATIO,
    c.CONFIDENCE.optional(),
    c.FALSE_ALARM_PROBABILITY.optional(),
    Column(
        "segment_starts_s",
        "reals",
        "When stretches begin in which a period holds, in order of time; the row tells the one with most calls. "
        "NULL where there is no period.",
        nullable=True,
    ),
    Column("segment_ends_s", "reals", "When they end.", nullable=True),
    Column("segment_periods_s", "reals", "The period of each.", low=0, nullable=True),
)

METADATA_PERIODS = Table(
    name="metadata_periods",
    layer="transforms",
    grain="one row per traced run and kind of its metadata calls, where the trace has their times",
    key=("trace_id", "operation_group"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        Column(
            "operation_group",
            "text",
            "What the calls do to files; all of them.",
            choices=("all", *c.METADATA_OPERATIONS),
        ),
        Column(
            "outcome",
            "text",
            "Whether calls come with a period, and if not, why; as of `periods`, whose method is null_tested. Each "
            "call "
            "counts as one, when it begins, however long it takes.",
            choices=_CONTROLLED_OUTCOMES,
        ),
        Column("metadata_call_count", "int", "Such calls of all ranks; those within others to files are not counted."),
        *_METADATA_PERIOD,
    ),
    partition="ended_on",
)

METADATA_SPANS = Table(
    name="metadata_spans",
    layer="samples",
    grain="one row per traced run that made metadata calls, with how long it lasted",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        Column("lasting_s", "real", "How long the run lasted, to its last call at least.", low=0),
    ),
    is_published=False,
)

METADATA_GRIDS = Table(
    name="metadata_grids",
    layer="samples",
    grain="one row per traced run that made metadata calls, with the grid on which they are counted",
    key=("trace_id",),
    columns=(c.ENDED_ON.optional(), c.TRACE_ID, c.INTERVAL_S, c.STEP_COUNT),
    is_published=False,
)

METADATA_STEPS = Table(
    name="metadata_steps",
    layer="samples",
    grain="one row per traced run, kind of metadata calls and step of its grid in which any began",
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
    grain="one row per application run and file system whose servers count metadata operations by job",
    key=("cluster", "job_id", "started_at", "filesystem"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        Column("is_complete", "bool", "Whether all that servers counted for the run is known, and of it alone."),
        c.METADATA_OPERATION_COUNT,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        Column(
            "sample_operations_per_s",
            "reals",
            "The run's operations in each step of its grid; NULL where nothing was scraped.",
        ),
        Column(
            "class_outcome",
            "text",
            "Whether there is a label, and if not, why; as of `classes`.",
            choices=("classified", "too_short", "no_data", "too_many_gaps"),
        ),
        c.LABEL.optional(),
        Column(
            "section_operations",
            "reals",
            "Operations in each quarter of the run.",
            unit="operations",
            low=0,
            nullable=True,
        ),
        c.CV.optional(),
        c.MISSING_RATIO.optional(),
        Column(
            "outcome",
            "text",
            "Whether operations come with a period, and if not, why; as of `periods`, whose method is null_tested.",
            choices=_CONTROLLED_OUTCOMES,
        ),
        *_METADATA_PERIOD,
    ),
    partition="ended_on",
)
