"""Every table, once: what a row is, its key, its columns."""

from warehouse.contracts import columns as c
from warehouse.contracts.event_tables import REQUEST_EVENTS as REQUEST_EVENTS
from warehouse.contracts.extrapolation_tables import (
    EXTRAPOLATION_RECORDS as EXTRAPOLATION_RECORDS,
    EXTRAPOLATIONS as EXTRAPOLATIONS,
)
from warehouse.contracts.network_tables import (
    NETWORK_BOTTLENECKS as NETWORK_BOTTLENECKS,
    NETWORK_EDGES as NETWORK_EDGES,
    NETWORK_PATTERNS as NETWORK_PATTERNS,
    NETWORK_RUNS as NETWORK_RUNS,
)
from warehouse.contracts.prediction_tables import (
    FAULTY_PREDICTIONS as FAULTY_PREDICTIONS,
    PREDICTION_RECORDS as PREDICTION_RECORDS,
    PREDICTIONS as PREDICTIONS,
)
from warehouse.contracts.signature_tables import (
    SAMPLE_SETS as SAMPLE_SETS,
    SIGNATURE_BURSTS as SIGNATURE_BURSTS,
    SIGNATURE_CHECKS as SIGNATURE_CHECKS,
    SIGNATURE_POINTS as SIGNATURE_POINTS,
    SIGNATURES as SIGNATURES,
)
from warehouse.contracts.trace_tables import (
    CLIENT_IO as CLIENT_IO,
    TRACE_CALLS as TRACE_CALLS,
    TRACE_COUNTERS as TRACE_COUNTERS,
    TRACE_FILES as TRACE_FILES,
    TRACE_HEATMAPS as TRACE_HEATMAPS,
    TRACE_JOBS as TRACE_JOBS,
    TRACE_MODULES as TRACE_MODULES,
    TRACE_RECORDS as TRACE_RECORDS,
    TRACE_REQUESTS as TRACE_REQUESTS,
    TRACE_SIGNALS as TRACE_SIGNALS,
    TRACES as TRACES,
)
from warehouse.contracts.types import Table

# ---- landed: what sources read, in our names, UTC and SI units; nothing dropped, nothing joined

JOB_RECORDS = Table(
    name="job_records",
    layer="landed",
    grain="one row per record of a job log",
    key=("source_file", "line"),
    columns=(
        c.CLUSTER.optional(),
        c.JOB_ID,
        c.USER.optional(),
        c.ACCOUNT.optional(),
        c.JOB_NAME.optional(),
        c.PARTITION.optional(),
        c.NODE_COUNT.optional(),
        c.TASK_COUNT.optional(),
        c.SUBMITTED_AT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        c.STATE.optional(),
        c.CANCELLED_BY.optional(),
        c.EXIT_CODE.optional(),
        c.NODE_LIST.optional(),
        c.COMMENT.optional(),
        c.SOURCE_FILE,
        c.LINE,
    ),
    is_published=False,
)

POLLS = Table(
    name="polls",
    layer="landed",
    grain="one row per poll of a controller",
    key=("filesystem", "controller", "polled_at"),
    columns=(
        c.POLLED_AT,
        c.FILESYSTEM,
        c.CONTROLLER,
        c.INTERVAL_S,
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        c.READ_IOPS.optional(),
        c.WRITE_IOPS.optional(),
        c.FLAG.optional(),
    ),
    is_published=False,
)

SERIES = Table(
    name="series",
    layer="landed",
    grain="one row per interval of a subject's own series and direction",
    key=("subject_id", "direction", "time_s"),
    columns=(
        c.SUBJECT_ID,
        c.DIRECTION,
        c.TIME_S,
        c.INTERVAL_S,
        c.BYTES_PER_S.optional(),
        c.FLAG.optional(),
        c.NODE_COUNT.optional(),
    ),
    is_published=False,
)

REJECTS = Table(
    name="rejects",
    layer="landed",
    grain="one row per refused input row, or per file that cannot be read at all",
    key=("landing_id", "source_file", "line", "reason"),
    columns=(c.LANDING_ID, c.SOURCE_FILE, c.LINE.optional(), c.REASON, c.REMEDY, c.RAW.optional()),
)

# ---- stage: one truth per thing

JOBS = Table(
    name="jobs",
    layer="stage",
    grain="one row per run of a job, array task or step",
    key=("cluster", "job_id", "started_at"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.PARENT_JOB_ID.optional(),
        c.JOB_KIND,
        c.IS_APPLICATION_RUN,
        c.USER.optional(),
        c.ACCOUNT.optional(),
        c.APPLICATION.optional(),
        c.PARTITION.optional(),
        c.FILESYSTEM.optional(),
        c.NODE_COUNT.optional(),
        c.TASK_COUNT.optional(),
        c.SUBMITTED_AT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        c.STATE.optional(),
        c.DURATION_S.optional(),
        c.SOURCE_FILE,
        c.LINE,
    ),
    partition="ended_on",
)

STALE_DAYS = Table(
    name="stale_days",
    layer="stage",
    grain="one row per UTC day whose runs or series must be computed anew, NULL for those without an end",
    key=("ended_on",),
    columns=(c.ENDED_ON.optional(),),
    is_published=False,
)

SERIES_INTERVALS = Table(
    name="series_intervals",
    layer="stage",
    grain="one row per subject, direction and interval of the subject's own series",
    key=("subject_id", "direction", "time_s"),
    columns=(
        c.ENDED_ON.optional(),
        c.SUBJECT_ID,
        c.DIRECTION,
        c.TIME_S,
        c.INTERVAL_S,
        c.BYTES_PER_S.optional(),
        c.FLAG.optional(),
        c.NODE_COUNT.optional(),
    ),
    partition="ended_on",
)

REPEATED_POLLS = Table(
    name="repeated_polls",
    layer="stage",
    grain="one row per controller and instant of which several polls were landed, with the one that counts",
    key=("filesystem", "controller", "polled_at"),
    columns=(
        c.FILESYSTEM,
        c.CONTROLLER,
        c.POLLED_AT,
        c.INTERVAL_S,
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        c.DUPLICATE_POLL_COUNT,
        c.CONFLICTING_POLL_COUNT,
    ),
    is_published=False,
)

FAULTY_POLLS = Table(
    name="faulty_polls",
    layer="stage",
    grain="one row per poll that is kept out of every sum, and rule that it breaks",
    key=("table_name", "rule", "row_json"),
    columns=(c.DAY.optional(), c.TABLE_NAME, c.RULE, c.ROW_JSON),
    is_published=False,
)

POLL_TICKS = Table(
    name="poll_ticks",
    layer="stage",
    grain="one row per file system, poll instant and interval, with what befell its polls",
    key=("filesystem", "polled_at", "interval_s"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        c.POLLED_AT,
        c.INTERVAL_S,
        c.CONTROLLER_COUNT,
        c.READ_BYTES.optional(),
        c.WRITTEN_BYTES.optional(),
        c.GAP_POLL_COUNT,
        c.DUPLICATE_POLL_COUNT,
        c.CONFLICTING_POLL_COUNT,
        c.IMPLAUSIBLE_POLL_COUNT,
    ),
    is_published=False,
)

POLL_DAYS = Table(
    name="poll_days",
    layer="stage",
    grain="one row per file system and UTC day of polls",
    key=("filesystem", "polled_on"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        c.INTERVAL_S,
        c.GRID_PHASE_S,
        c.CONTROLLER_COUNT,
        c.POLL_COUNT,
        c.EXPECTED_POLL_COUNT,
        c.MISSING_RATIO,
        c.GAP_POLL_COUNT,
        c.DUPLICATE_POLL_COUNT,
        c.CONFLICTING_POLL_COUNT,
        c.IMPLAUSIBLE_POLL_COUNT,
        c.READ_BYTES.optional(),
        c.WRITTEN_BYTES.optional(),
        c.PEAK_BYTES_PER_S.optional(),
    ),
    partition="polled_on",
)

TICKS = Table(
    name="ticks",
    layer="stage",
    grain="one row per file system, poll instant and interval, all its controllers together",
    key=("filesystem", "polled_at", "interval_s"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        c.POLLED_AT,
        c.INTERVAL_S,
        c.CONTROLLER_COUNT,
        c.EXPECTED_CONTROLLER_COUNT,
        c.READ_BYTES.optional(),
        c.WRITTEN_BYTES.optional(),
    ),
    partition="polled_on",
)

# ---- samples: each run's cut out of its file system's traffic

RUNS = Table(
    name="runs",
    layer="samples",
    grain="one row per application run and file system that it may have used, with the grid of its sample",
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
        c.STEP_US.optional(),
        c.PHASE_US.optional(),
        c.EXPECTED_CONTROLLER_COUNT.optional(),
        c.FIRST_STEP.optional(),
        c.LAST_STEP.optional(),
    ),
    is_published=False,
)

GRID_STEPS = Table(
    name="grid_steps",
    layer="samples",
    grain="one row per file system, grid and step of it that some run needs, gaps included",
    key=("filesystem", "step_us", "phase_us", "step"),
    columns=(
        c.FILESYSTEM,
        c.STEP_US,
        c.PHASE_US,
        c.STEP,
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        c.REPORTED_RATIO,
    ),
    is_published=False,
)

SERVER_IO = Table(
    name="server_io",
    layer="samples",
    grain="one row per application run, file system and direction, as the storage servers saw it",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM.optional(),
        c.DIRECTION,
        c.JOB_IO_OUTCOME,
        c.VOLUME_BYTES.optional(),
        c.MEAN_BYTES_PER_S.optional(),
        c.PEAK_BYTES_PER_S.optional(),
        c.POLL_COUNT,
        c.MISSING_RATIO.optional(),
        c.CONCURRENT_JOB_COUNT,
    ),
    is_published=False,
)

JOB_IO = Table(
    name="job_io",
    layer="samples",
    grain="one row per application run or traced run, file system and direction",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "source", "trace_id"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT.optional(),
        c.FILESYSTEM.optional(),
        c.DIRECTION,
        c.SOURCE,
        c.TRACE_ID.optional(),
        c.JOB_IO_OUTCOME,
        c.VOLUME_BYTES.optional(),
        c.MEAN_BYTES_PER_S.optional(),
        c.PEAK_BYTES_PER_S.optional(),
        c.POLL_COUNT.optional(),
        c.MISSING_RATIO.optional(),
        c.CONCURRENT_JOB_COUNT.optional(),
    ),
    partition="ended_on",
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
        c.REPORTED_RATIOS.optional(),
    ),
    partition="ended_on",
)

APPLICATIONS = Table(
    name="applications",
    layer="samples",
    grain="one row per application of one user at one node count",
    key=("application_id",),
    columns=(
        c.APPLICATION_ID,
        c.USER,
        c.APPLICATION,
        c.NODE_COUNT,
        c.SAMPLE_COUNT,
        c.FIRST_AT,
        c.LAST_AT,
    ),
)

CLASSES = Table(
    name="classes",
    layer="transforms",
    grain="one row per job, series, traced run or application, file system and direction",
    key=("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.SUBJECT_KIND,
        c.CLUSTER.optional(),
        c.SUBJECT_ID,
        c.STARTED_AT.optional(),
        c.FILESYSTEM.optional(),
        c.DIRECTION,
        c.SOURCE,
        c.IS_SHARED_TRAFFIC,
        c.CLASS_OUTCOME,
        c.LABEL.optional(),
        c.SECTION_BYTES.optional(),
        c.COV.optional(),
        c.VOLUME_BYTES.optional(),
        c.NODE_COUNT.optional(),
        c.DURATION_S.optional(),
        c.MISSING_RATIO.optional(),
    ),
    partition="ended_on",
)

PERIODS = Table(
    name="periods",
    layer="transforms",
    grain="one row per job, series, traced run or application, file system, direction and method",
    key=("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "method"),
    columns=(
        c.ENDED_ON.optional(),
        c.SUBJECT_KIND,
        c.CLUSTER.optional(),
        c.SUBJECT_ID,
        c.STARTED_AT.optional(),
        c.FILESYSTEM.optional(),
        c.DIRECTION,
        c.SOURCE,
        c.IS_SHARED_TRAFFIC,
        c.METHOD_OF_PERIOD,
        c.IS_DEFAULT,
        c.PERIOD_OUTCOME,
        c.WINDOW_START_S.optional(),
        c.WINDOW_END_S.optional(),
        c.SAMPLING_HZ.optional(),
        c.SAMPLE_COUNT_OF_SIGNAL.optional(),
        c.MISSING_RATIO.optional(),
        c.FREQUENCY_HZ.optional(),
        c.PERIOD_S.optional(),
        c.CONFIDENCE.optional(),
        c.REFINED_CONFIDENCE.optional(),
        c.CANDIDATES.optional(),
        c.CANDIDATE_AMPLITUDES.optional(),
        c.CANDIDATE_PHASES.optional(),
        c.MEAN_BYTES_PER_S.optional(),
        c.R_IO.optional(),
        c.B_IO.optional(),
        c.SIGMA_VOL.optional(),
        c.SIGMA_TIME.optional(),
        c.PERIODICITY_SCORE.optional(),
        c.BYTES_PER_PERIOD.optional(),
        c.ABSTRACTION_ERROR.optional(),
        c.FALSE_ALARM_PROBABILITY.optional(),
    ),
    partition="ended_on",
)

# ---- quality and history

QUALITY = Table(
    name="quality",
    layer="quality",
    grain="one row per table and expectation of the release's checks",
    key=("table_name", "expectation"),
    columns=(c.TABLE_NAME, c.EXPECTATION, c.SEVERITY, c.SUCCESS, c.OBSERVED, c.UNEXPECTED_COUNT),
)

QUARANTINE = Table(
    name="quarantine",
    layer="quality",
    grain="one row per row that broke a rule and was taken out, and rule",
    key=("table_name", "rule", "row_json"),
    columns=(c.DAY.optional(), c.TABLE_NAME, c.RULE, c.ROW_JSON),
    partition="day",
)

RELEASES = Table(
    name="releases",
    layer="quality",
    grain="one row per release",
    key=("release_id", "created_at"),
    columns=(
        c.RELEASE_ID,
        c.CREATED_AT,
        c.RELEASE_KIND,
        c.PARENT_RELEASE_ID.optional(),
        c.CODE_VERSION,
        c.DATES,
        c.INPUTS,
        c.REMOVED_INPUTS,
        c.PARAMETERS,
        c.SNAPSHOTS,
        c.VERDICT,
    ),
)

TABLES: tuple[Table, ...] = (
    JOB_RECORDS,
    POLLS,
    SERIES,
    REJECTS,
    TRACES,
    TRACE_MODULES,
    TRACE_FILES,
    TRACE_RECORDS,
    TRACE_HEATMAPS,
    TRACE_REQUESTS,
    TRACE_CALLS,
    REQUEST_EVENTS,
    EXTRAPOLATION_RECORDS,
    PREDICTION_RECORDS,
    STALE_DAYS,
    JOBS,
    SERIES_INTERVALS,
    REPEATED_POLLS,
    FAULTY_POLLS,
    POLL_TICKS,
    POLL_DAYS,
    TICKS,
    TRACE_JOBS,
    TRACE_COUNTERS,
    TRACE_SIGNALS,
    EXTRAPOLATIONS,
    NETWORK_RUNS,
    NETWORK_EDGES,
    NETWORK_PATTERNS,
    NETWORK_BOTTLENECKS,
    RUNS,
    GRID_STEPS,
    SERVER_IO,
    CLIENT_IO,
    JOB_IO,
    SAMPLES,
    APPLICATIONS,
    SAMPLE_SETS,
    SIGNATURES,
    SIGNATURE_POINTS,
    SIGNATURE_BURSTS,
    SIGNATURE_CHECKS,
    CLASSES,
    PERIODS,
    FAULTY_PREDICTIONS,
    PREDICTIONS,
    QUALITY,
    QUARANTINE,
    RELEASES,
)


def table(name: str) -> Table:
    """Return the table of that name, or raise KeyError."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no table is called {name}")
