"""Tables of samples; a sample is the traffic of a run, or of its whole file system during the run, step by step."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.metrics import add_operations
from iosig.warehouse.contracts.types import Column, Table

_SUBJECT = (c.APPLICATION_ID, c.FILESYSTEM, c.DIRECTION, c.METRIC)
_STEP_US = Column("step_us", "int", "The length of a grid step.", low=1)
_PHASE_US = Column("phase_us", "int", "Phase of the grid's edges within the step.", low=0)

RUNS = Table(
    name="runs",
    layer="samples",
    grain="one row per application run and file system that it may have used, with its sample's grid",
    key=("cluster", "job_id", "started_at", "filesystem"),
    columns=(
        c.ENDED_ON.optional(),
        c.APPLICATION_ID.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.ENDED_AT.optional(),
        c.FILESYSTEM.optional(),
        c.INTERVAL_S.optional(),
        _STEP_US.optional(),
        _PHASE_US.optional(),
        c.EXPECTED_CONTROLLER_COUNT.optional(),
        Column("first_step", "int", "The run's first grid step, counted from 1970.", unit="steps", nullable=True),
        Column("last_step", "int", "The run's last grid step, counted from 1970.", unit="steps", nullable=True),
    ),
    is_published=False,
)

FILESYSTEM_RUNS = replace(
    RUNS,
    name="filesystem_runs",
    grain="one row per file system and run of a known application that may have used it",
    columns=(
        c.APPLICATION_ID,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.ENDED_AT.optional(),
        c.FILESYSTEM.optional(),
    ),
)

GRID_STEPS = Table(
    name="grid_steps",
    layer="samples",
    grain="one row per file system, grid and step needed by a run, including gaps",
    key=("filesystem", "step_us", "phase_us", "step"),
    columns=(
        c.FILESYSTEM,
        _STEP_US,
        _PHASE_US,
        Column("step", "int", "The grid step, counted from 1970.", unit="steps"),
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        Column("read_operations_per_s", "real", "Reads per second; NULL if not counted.", nullable=True),
        Column("write_operations_per_s", "real", "Writes per second; NULL if not counted.", nullable=True),
        Column("reported_ratio", "real", "Share of the controllers that reported in the step."),
    ),
    is_published=False,
)

SAMPLES = Table(
    name="samples",
    layer="samples",
    grain="one row per application run, file system and direction that polls cover",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.APPLICATION_ID.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SAMPLE_BYTES_PER_S,
        Column(
            "reported_ratios",
            "reals",
            "Share of the file system's controllers that reported in each step; NULL if all reported in every step.",
            nullable=True,
        ),
        c.SAMPLE_OPERATIONS_PER_S.optional(),
        c.VOLUME_OPERATIONS.optional(),
    ),
    partition="ended_on",
)

SAMPLE_PLACES = replace(
    SAMPLES,
    name="sample_places",
    grain="one row per application run, file system and direction with a grid, and its row numbers",
    columns=(
        *SAMPLES.columns[:10],
        Column("first_place", "int", "Row of `grid_steps` with the run's first step, from 0.", low=0),
    ),
    partition=None,
    is_published=False,
)

APPLICATIONS = Table(
    name="applications",
    layer="samples",
    grain="one row per application of one user at one node count on one machine",
    key=("application_id",),
    columns=(
        c.APPLICATION_ID,
        c.MACHINE.optional(),
        c.USER,
        c.APPLICATION,
        c.NODE_COUNT,
        c.SAMPLE_COUNT,
        c.FIRST_RUN_STARTED_AT,
        c.LAST_RUN_ENDED_AT,
    ),
)

SAMPLE_SETS = Table(
    name="sample_sets",
    layer="samples",
    grain="one row per application, file system, direction, metric and run with a sample in the set",
    key=("application_id", "filesystem", "direction", "metric", "cluster", "job_id", "started_at"),
    columns=add_operations(
        *_SUBJECT,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.ENDED_ON,
        c.NODE_COUNT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.DURATION_S,
        Column(
            "is_truncated",
            "bool",
            (
                "Whether the run was stopped before it was complete: by a time limit, a failed node, a lack of memory, "
                "preemption or cancellation. It then says nothing about the duration of the application."
            ),
            nullable=True,
        ),
        Column(
            "sample_bytes",
            "real",
            (
                "Bytes of the sample: all traffic of the file system during the run if the source is `server`, the "
                "run's own bytes if it is `jobstats` or `client`."
            ),
        ),
        c.MISSING_RATIO,
        c.SOURCE.optional(),
    ),
)

KEPT_SUBJECTS = Table(
    name="kept_subjects",
    layer="samples",
    grain="one row per application, file system, direction and metric with the base release's samples",
    key=("application_id", "filesystem", "direction", "metric"),
    columns=_SUBJECT,
    is_published=False,
)
JOINT_SUBJECTS = replace(
    KEPT_SUBJECTS,
    name="joint_subjects",
    grain="one row per application, file system and direction with a joint signature",
)

JOINT_RUNS = Table(
    name="joint_runs",
    layer="samples",
    grain="one row per run, file system and direction active during a sample of a joint subject",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.APPLICATION_ID,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.ENDED_AT,
        c.DURATION_S,
        c.ENDED_ON,
        c.FILESYSTEM,
        c.DIRECTION,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        Column("is_sample", "bool", "Whether its sample belongs to a joint subject."),
    ),
    is_published=False,
)

_FIRST_STEP, _LAST_STEP = RUNS.column("first_step"), RUNS.column("last_step")
_OF_A_RUN = (c.ENDED_ON.optional(), c.APPLICATION_ID.optional(), c.CLUSTER, c.JOB_ID, c.STARTED_AT)
_OUTCOME = Column(
    "outcome",
    "text",
    (
        "Whether the counts are complete, or the reason why not: missing counts of servers (incomplete), or a "
        "simultaneous run of the same job or of the same id on another cluster (several_runs)."
    ),
    choices=("measured", "incomplete", "several_runs"),
)

RUN_COUNTER_DELTAS = Table(
    name="run_counter_deltas",
    layer="samples",
    grain="one row per application run, file system and scrape interval with counter increases",
    key=("cluster", "job_id", "started_at", "filesystem", "interval_started_at", "interval_ended_at"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.SCHEDULER_ID,
        c.INTERVAL_STARTED_AT,
        c.INTERVAL_ENDED_AT,
        c.READ_BYTES,
        c.WRITTEN_BYTES,
        c.METADATA_OPERATION_COUNT.optional(),
        Column(
            "is_owner",
            "bool",
            "Whether the interval is assigned to this run; otherwise another run of this id overlaps it more.",
        ),
        Column("is_sure", "bool", "Whether the increase is complete."),
        Column("is_alone", "bool", "Whether no other run of the same job or id was active at the same time."),
    ),
    is_published=False,
)

EXACT_RUNS = Table(
    name="exact_runs",
    layer="samples",
    grain="one row per application run and file system that counts by job, with the grid of its sample",
    key=("cluster", "job_id", "started_at", "filesystem"),
    columns=(
        *_OF_A_RUN,
        c.ENDED_AT,
        c.FILESYSTEM,
        c.INTERVAL_S,
        _STEP_US,
        _PHASE_US,
        _FIRST_STEP,
        _LAST_STEP,
        c.GRID_STARTED_AT,
        c.STEP_COUNT,
        c.COUNTED_FROM_AT,
        c.COUNTED_UNTIL_AT,
        _OUTCOME,
    ),
    is_published=False,
)

EXACT_SAMPLES = Table(
    name="exact_samples",
    layer="samples",
    grain="one row per application run, file system and direction with counters by job",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.FILESYSTEM,
        c.DIRECTION,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SAMPLE_BYTES_PER_S,
        _OUTCOME,
    ),
    partition="ended_on",
)

_TRACE_OUTCOME = Column(
    "outcome",
    "text",
    (
        "Whether the sample holds the run's own traffic on the servers: compared with polls and never above them "
        "(measured). Otherwise: above what servers moved (differs), polled for less than half of its bytes "
        "(no_polls), less than the whole run (incomplete), requests of unknown size or direction (unknown_sizes), "
        "bytes on other file systems too (several_filesystems), or traces of several tracers (several_tracers)."
    ),
    choices=(
        "measured",
        "differs",
        "no_polls",
        "incomplete",
        "unknown_sizes",
        "several_filesystems",
        "several_tracers",
    ),
)

TRACE_SERIES = Table(
    name="trace_series",
    layer="samples",
    grain="one row per signal of a traced run that has a job and known times",
    key=("trace_id", "module", "direction", "is_async"),
    columns=(
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.DIRECTION,
        c.TRACE_ID,
        c.MODULE,
        c.IS_ASYNC,
        c.BASIS_OF_SIGNAL,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SIGNAL_BYTES_PER_S,
    ),
    is_published=False,
)

TRACE_RUNS = Table(
    name="trace_runs",
    layer="samples",
    grain="one row per traced application run and direction, with the grids of its sample and of the polls",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.ENDED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        c.TRACER,
        c.BASIS_OF_SIGNAL.optional(),
        c.TRACED_BYTES,
        _TRACE_OUTCOME,
        c.INTERVAL_S,
        _STEP_US,
        _PHASE_US,
        _FIRST_STEP,
        _LAST_STEP,
        c.GRID_STARTED_AT,
        c.STEP_COUNT,
        Column("poll_step_us", "int", "Length of a step of the polls' grid.", low=1, nullable=True),
        Column("poll_phase_us", "int", "Phase of the polls' grid within the step.", low=0, nullable=True),
        Column("poll_first_step", "int", "First step of the run on the polls' grid.", unit="steps", nullable=True),
        Column("poll_last_step", "int", "Last step of the run on the polls' grid.", unit="steps", nullable=True),
        Column("poll_place", "int", "Row of `grid_steps` with step 0 of the polls' grid.", nullable=True),
        Column("polled_first_step", "int", "First step of the grid in `grid_steps`.", unit="steps", nullable=True),
        Column("polled_last_step", "int", "Last step of the grid in `grid_steps`.", unit="steps", nullable=True),
    ),
    is_published=False,
)

TRACE_SAMPLES = Table(
    name="trace_samples",
    layer="samples",
    grain="one row per application run, file system and direction with a trace",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.FILESYSTEM,
        c.DIRECTION,
        c.TRACER,
        c.BASIS_OF_SIGNAL.optional(),
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SAMPLE_BYTES_PER_S,
        c.TRACED_BYTES,
        Column(
            "compared_ratio",
            "real",
            "Share of the sample's bytes (of its time if it has none) at times when the file system was polled.",
            unit="1",
            low=0,
            high=1,
        ),
        Column(
            "excess_bytes",
            "real",
            "Most bytes by which the sample exceeds all traffic of the file system in any interval, beyond the "
            "delays of caches and clocks; NULL without polls.",
            nullable=True,
        ),
        _TRACE_OUTCOME,
    ),
    partition="ended_on",
)

METADATA_RUNS = replace(
    EXACT_RUNS,
    name="metadata_runs",
    grain="one row per run and file system with counters of metadata operations by job",
    columns=(*EXACT_RUNS.columns, c.METADATA_OPERATION_COUNT, c.NODE_COUNT.optional()),
)

COUNTED_SAMPLES = Table(
    name="counted_samples",
    layer="samples",
    grain="one row per application run, file system and direction with complete counters",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.ENDED_AT.optional(),
        c.NODE_COUNT.optional(),
        c.FILESYSTEM,
        c.DIRECTION,
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.SAMPLE_BYTES_PER_S,
    ),
    is_published=False,
)

OWN_SERIES = Table(
    name="own_series",
    layer="samples",
    grain="one row per run, file system, direction and series of the run's own bytes, counted or traced",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "trace_id", "module", "is_async"),
    columns=(
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        c.TRACE_ID.optional(),
        c.MODULE.optional(),
        c.IS_ASYNC.optional(),
        c.GRID_STARTED_AT,
        c.SAMPLE_BYTES_PER_S,
        Column("counted_s", "real", "Step of the series."),
        Column("estimate_source", "text", "Source of the series.", choices=("counted", "traced")),
    ),
    is_published=False,
)

SAMPLE_CHECKS = Table(
    name="sample_checks",
    layer="samples",
    grain=(
        "one row per application run, file system and direction with a sample cut out of shared traffic and an "
        "exact one"
    ),
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.FILESYSTEM,
        c.DIRECTION,
        c.EXACT_BYTES,
        Column("cut_bytes", "real", "Bytes of the sample that was cut out of shared traffic."),
        Column(
            "overestimation_factor",
            "real",
            "Bytes of the cut sample divided by those of the exact one.",
            unit="1",
            low=0,
            nullable=True,
        ),
        Column(
            "cut_correlation",
            "real",
            "Pearson's correlation of the two, step by step of the coarser grid; NULL where one of them is constant.",
            nullable=True,
        ),
    ),
    partition="ended_on",
)

SAMPLE_PAIRS = replace(
    SAMPLE_CHECKS,
    name="sample_pairs",
    grain="one row per application run, file system and direction with a cut sample and an exact one",
    columns=(
        *SAMPLE_CHECKS.columns[:-1],
        c.GRID_STARTED_AT,
        c.INTERVAL_S,
        c.SAMPLE_BYTES_PER_S,
        Column("cut_grid_started_at", "instant", "Start of the cut sample's first step."),
        Column("cut_interval_s", "real", "Length of a step of the cut sample."),
        Column("cut_bytes_per_s", "reals", "The cut sample."),
    ),
    partition=None,
    is_published=False,
)
