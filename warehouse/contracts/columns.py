"""Every column, once: the same quantity has the same name, unit and meaning in every table."""

from warehouse.contracts.types import Column

DIRECTIONS = ("read", "write", "unstated")
LABELS = ("START", "END", "HILL", "CANYON", "UNIFORM", "OTHER", "NO_USAGE")
STATES = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "COMPLETING",
    "CONFIGURING",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PENDING",
    "PREEMPTED",
    "REQUEUED",
    "RESIZING",
    "REVOKED",
    "RUNNING",
    "SUSPENDED",
    "TIMEOUT",
    "UNKNOWN",
)

# ---- who and what ran
CLUSTER = Column("cluster", "text", "The machine on which the job ran; `default` where the log does not say.")
JOB_ID = Column("job_id", "text", "The scheduler's id of the job, array task or step, as it writes it.")
PARENT_JOB_ID = Column("parent_job_id", "text", "The id of the job to which a step belongs.")
JOB_KIND = Column(
    "job_kind",
    "text",
    "What the record is: a whole allocation, an array task, a numbered step, or a step of the scheduler's own "
    "(batch, extern, interactive).",
    choices=("allocation", "array_task", "step", "system_step"),
)
USER = Column("user", "text", "The user who submitted the job.")
ACCOUNT = Column("account", "text", "The account or project that pays for the job.")
JOB_NAME = Column("job_name", "text", "The name of the job or step, as the log has it.")
APPLICATION = Column(
    "application", "text", "The program that ran: the job's or step's name, after the site's own rule."
)
APPLICATION_ID = Column(
    "application_id",
    "text",
    "One application of one user at one size: user/application/node_count, a slash in the user as %2F.",
)
PARTITION = Column("partition", "text", "The scheduler's partition or queue.")
NODE_COUNT = Column("node_count", "int", "Nodes that the job was given.", unit="nodes", low=0)
TASK_COUNT = Column("task_count", "int", "Tasks (MPI ranks) that the job was given.", unit="tasks", low=0)
STATE = Column("state", "text", "How the job ended, in Slurm's words.", choices=STATES)
CANCELLED_BY = Column("cancelled_by", "text", "Who cancelled the job: the user id that the log names.")
EXIT_CODE = Column("exit_code", "text", "The job's exit code, as the log writes it.")
NODE_LIST = Column("node_list", "text", "The nodes that the job was given, as the log writes them.")
COMMENT = Column("comment", "text", "The job's comment, as the log has it.")
IS_APPLICATION_RUN = Column(
    "is_application_run",
    "bool",
    "Whether this record is the finest one of a run: a step, or a job of which no numbered step is known.",
)

# ---- when
SUBMITTED_AT = Column("submitted_at", "instant", "When the job was submitted.", unit="UTC")
STARTED_AT = Column("started_at", "instant", "When the job started.", unit="UTC")
ENDED_AT = Column("ended_at", "instant", "When the job ended.", unit="UTC")
ENDED_ON = Column(
    "ended_on", "date", "The UTC day on which the job or series ended; NULL where it is not known.", unit="UTC"
)
DURATION_S = Column("duration_s", "real", "How long it lasted, from start to end.", unit="s", low=0)
POLLED_AT = Column("polled_at", "instant", "The right edge of the interval that the poll covers.", unit="UTC")
POLLED_ON = Column("polled_on", "date", "The UTC day of the poll's right edge.", unit="UTC")
INTERVAL_S = Column(
    "interval_s",
    "real",
    "The length of the interval that a poll or grid step covers; a year is the longest.",
    unit="s",
    low=1e-6,
    high=366 * 86400,
)
TIME_S = Column(
    "time_s",
    "real",
    "The right edge of the interval: seconds since 1970 UTC, or since the series' own zero.",
    unit="s",
    high=1e10,
)

# ---- what storage moved
FILESYSTEM = Column(
    "filesystem", "text", "The file system; `default` where neither the input nor the command names it."
)
CONTROLLER = Column("controller", "text", "The storage controller, server or target that was polled.")
READ_BYTES_PER_S = Column("read_bytes_per_s", "real", "Bytes read per second over the interval.", unit="B/s", low=0)
WRITE_BYTES_PER_S = Column(
    "write_bytes_per_s", "real", "Bytes written per second over the interval.", unit="B/s", low=0
)
BYTES_PER_S = Column("bytes_per_s", "real", "Bytes per second over the interval.", unit="B/s", low=0)
READ_IOPS = Column("read_iops", "real", "Read operations per second over the interval.", unit="1/s", low=0)
WRITE_IOPS = Column("write_iops", "real", "Write operations per second over the interval.", unit="1/s", low=0)
READ_BYTES = Column("read_bytes", "int", "Bytes read in the interval.", unit="B", low=0)
WRITTEN_BYTES = Column("written_bytes", "int", "Bytes written in the interval.", unit="B", low=0)
FLAG = Column(
    "flag",
    "text",
    "Why the interval has no value (the counter was reset or fell, the poll is marked missing, nothing was "
    "recorded any more), or a corrected one (retracted: bytes that the counter took back later are not counted).",
    choices=("reset", "decrease", "missing", "not_recorded", "retracted"),
)
DIRECTION = Column("direction", "text", "Which way the bytes went, seen from the application.", choices=DIRECTIONS)

# ---- a day of polls
CONTROLLER_COUNT = Column("controller_count", "int", "Controllers that reported.", unit="controllers", low=0)
EXPECTED_CONTROLLER_COUNT = Column(
    "expected_controller_count", "int", "Controllers that reported at all on that day.", unit="controllers", low=0
)
POLL_COUNT = Column("poll_count", "int", "Polls that hold a value; of a run, in that direction.", unit="polls", low=0)
EXPECTED_POLL_COUNT = Column(
    "expected_poll_count",
    "int",
    "Polls that the interval and the controllers of the day make due.",
    unit="polls",
    low=0,
)
GRID_PHASE_S = Column(
    "grid_phase_s",
    "real",
    "Where in the interval the polls fall: seconds since 1970 modulo the interval.",
    unit="s",
    low=0,
)
MISSING_RATIO = Column(
    "missing_ratio", "real", "Share of the expected polls that hold no value.", unit="1", low=0, high=1
)
GAP_POLL_COUNT = Column("gap_poll_count", "int", "Polls that are flagged as gaps.", unit="polls", low=0)
DUPLICATE_POLL_COUNT = Column(
    "duplicate_poll_count",
    "int",
    "Polls that repeat another one of the same controller and instant.",
    unit="polls",
    low=0,
)
STEP_US = Column("step_us", "int", "The length of a grid step.", unit="us", low=1)
PHASE_US = Column("phase_us", "int", "Where in the step the grid's edges lie.", unit="us", low=0)
FIRST_STEP = Column("first_step", "int", "The run's first grid step, counted from 1970.", unit="steps")
LAST_STEP = Column("last_step", "int", "The run's last grid step, counted from 1970.", unit="steps")
CONFLICTING_POLL_COUNT = Column(
    "conflicting_poll_count",
    "int",
    "Polls that contradict another one of the same controller and instant; the first landed is kept.",
    unit="polls",
    low=0,
)
IMPLAUSIBLE_POLL_COUNT = Column(
    "implausible_poll_count", "int", "Polls above the controller's limit, kept out of every sum.", unit="polls", low=0
)
PEAK_BYTES_PER_S = Column(
    "peak_bytes_per_s",
    "real",
    "The highest rate of any interval; of a run, of any step of its sample, and no lower than the mean.",
    unit="B/s",
    low=0,
)

# ---- what a job's file system did meanwhile
VOLUME_BYTES = Column("volume_bytes", "real", "Bytes moved: the sum of rate x interval.", unit="B", low=0)
MEAN_BYTES_PER_S = Column(
    "mean_bytes_per_s",
    "real",
    "Volume over the time that the polls of a controller cover on average.",
    unit="B/s",
    low=0,
)
CONCURRENT_JOB_COUNT = Column(
    "concurrent_job_count",
    "int",
    "Other application runs on the same file system that overlap in time, of those known when the row was made.",
    unit="jobs",
    low=0,
)
JOB_IO_OUTCOME = Column(
    "outcome",
    "text",
    "Whether polls of the job's file system were there to measure it.",
    choices=("measured", "no_polls"),
)
GRID_STARTED_AT = Column("grid_started_at", "instant", "The left edge of the sample's first grid step.", unit="UTC")
STEP_COUNT = Column("step_count", "int", "Steps of the sample's grid.", unit="steps", low=0)
SAMPLE_BYTES_PER_S = Column(
    "sample_bytes_per_s",
    "reals",
    "The file system's rate in each step of the grid; NULL where no controller reported.",
    unit="B/s",
    low=0,
)
REPORTED_RATIOS = Column(
    "reported_ratios",
    "reals",
    "The share of the file system's controllers that reported in each step; NULL where all did in every step.",
    unit="1",
    low=0,
    high=1,
)
STEP = Column("step", "int", "The grid step, counted from 1970.", unit="steps")
REPORTED_RATIO = Column(
    "reported_ratio", "real", "The share of the controllers that reported in the step.", unit="1", low=0, high=1
)
SAMPLE_COUNT = Column(
    "sample_count", "int", "Samples, which are runs with a known end, in the set.", unit="samples", low=0
)
FIRST_AT = Column("first_at", "instant", "When the first run started.", unit="UTC")
LAST_AT = Column("last_at", "instant", "When the last run ended.", unit="UTC")

# ---- classes
SUBJECT_KIND = Column(
    "subject_kind", "text", "What the row is about.", choices=("job", "series", "trace", "application")
)
SUBJECT_ID = Column("subject_id", "text", "The job's id, or the series' name.")
SOURCE = Column(
    "source",
    "text",
    "Whose measurement it is: the server side (shared traffic) or a series of the subject's own.",
    choices=("server", "series", "client"),
)
IS_SHARED_TRAFFIC = Column(
    "is_shared_traffic", "bool", "Whether other jobs' bytes are in it: true of everything measured at the server."
)
LABEL = Column("label", "text", "When in its run the subject does its I/O.", choices=LABELS)
SECTION_BYTES = Column("section_bytes", "reals", "Bytes in each quarter of the run.", unit="B", low=0)
COV = Column("cov", "real", "Coefficient of variation of the four quarters.", unit="1", low=0)
CLASS_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a label, and if not, why.",
    choices=("classified", "too_short", "no_data", "too_many_gaps"),
)

# ---- quality and history
SOURCE_FILE = Column("source_file", "text", "The file's name as it was landed.")
LINE = Column("line", "int", "The line in that file, counted from 1; for formats without lines, the record.", low=1)
REASON = Column("reason", "text", "What is wrong, in one sentence.")
REMEDY = Column("remedy", "text", "What to do about it.")
RAW = Column("raw", "text", "The input as it was, cut at 2,000 characters.")
LANDING_ID = Column("landing_id", "text", "The landing: the first 16 hex digits of the content's SHA-256.")
RELEASE_ID = Column("release_id", "text", "The release: its last day and a fingerprint of all that went into it.")
TABLE_NAME = Column("table_name", "text", "The table that was checked.")
EXPECTATION = Column("expectation", "text", "The expectation, by its name in the table's suite.")
RULE = Column("rule", "text", "The rule that the row breaks, by its name in the table's suite.")
SEVERITY = Column(
    "severity",
    "text",
    "What a failure means: critical stops the release, warning marks it.",
    choices=("critical", "warning", "info"),
)
SUCCESS = Column("success", "bool", "Whether the expectation holds.")
OBSERVED = Column("observed", "text", "What was observed, as JSON.")
UNEXPECTED_COUNT = Column("unexpected_count", "int", "Rows that break the expectation.", unit="rows", low=0)
DAY = Column("day", "date", "The UTC day to which the row belongs; NULL where it has none.", unit="UTC")
ROW_JSON = Column("row_json", "text", "The row that was taken out, as JSON.")
CREATED_AT = Column("created_at", "instant", "When the release was made.", unit="UTC")
CODE_VERSION = Column("code_version", "text", "The version of iosig that made it.")
PARENT_RELEASE_ID = Column("parent_release_id", "text", "The release on which it builds.")
RELEASE_KIND = Column("kind", "text", "How it came about.", choices=("run", "rollback"))
DATES = Column("dates", "text", "The days that were computed anew, as JSON.")
INPUTS = Column("inputs", "text", "The landings that are new since the parent release, as JSON.")
REMOVED_INPUTS = Column("removed_inputs", "text", "The landings that were replaced since the parent release, as JSON.")
PARAMETERS = Column("parameters", "text", "The settings that the results depend on, as JSON.")
SNAPSHOTS = Column("snapshots", "text", "The snapshot of every table, as JSON.")
VERDICT = Column("verdict", "text", "What the checks said.", choices=("passed", "warned"))
