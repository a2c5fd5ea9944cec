"""Every column, once: the same quantity has the same name, unit and meaning in every table."""

from warehouse.contracts.event_columns import (
    EVENT as EVENT,
    EVENT_BYTES as EVENT_BYTES,
    EVENT_KIND as EVENT_KIND,
    IS_COLLECTIVE as IS_COLLECTIVE,
    LAYER as LAYER,
    LAYER_NUMBER as LAYER_NUMBER,
    NODE as NODE,
    PEER as PEER,
    REQUEST_ID as REQUEST_ID,
)
from warehouse.contracts.extrapolation_columns import (
    CALL_COUNT as CALL_COUNT,
    CLASS_COUNT as CLASS_COUNT,
    EXTRAPOLATION_OUTCOME as EXTRAPOLATION_OUTCOME,
    HAS_NESTED_CALLS as HAS_NESTED_CALLS,
    MODELS as MODELS,
    RANK_COUNTS as RANK_COUNTS,
    REFUSED_FIELDS as REFUSED_FIELDS,
    TRACE_IDS as TRACE_IDS,
    TRACE_SET as TRACE_SET,
    TRACE_SET_ID as TRACE_SET_ID,
)
from warehouse.contracts.network_columns import (
    ACTIVE_NODE_COUNT as ACTIVE_NODE_COUNT,
    BAND_RATIO as BAND_RATIO,
    BANDWIDTH_BINS as BANDWIDTH_BINS,
    BANDWIDTH_COUNTS as BANDWIDTH_COUNTS,
    BOTTLENECK_NUMBER as BOTTLENECK_NUMBER,
    CAUSES as CAUSES,
    EDGE_SPREAD as EDGE_SPREAD,
    GROUP_SIZES as GROUP_SIZES,
    HOP as HOP,
    IS_WHOLE as IS_WHOLE,
    LAYERS as LAYERS,
    LONGEST_S as LONGEST_S,
    MEDIAN_VALUE as MEDIAN_VALUE,
    MODULE_OF_NETWORK as MODULE_OF_NETWORK,
    NEGATIVE_COUNT as NEGATIVE_COUNT,
    NETWORK_METRIC as NETWORK_METRIC,
    NETWORK_OUTCOME as NETWORK_OUTCOME,
    NODE_COUNTS as NODE_COUNTS,
    NODE_SPREAD as NODE_SPREAD,
    NODES_PER_BAND as NODES_PER_BAND,
    OUTLIER_SCORE as OUTLIER_SCORE,
    PATTERN as PATTERN,
    PATTERN_OUTCOME as PATTERN_OUTCOME,
    REQUEST_COUNT as REQUEST_COUNT,
    REQUEST_SCORE as REQUEST_SCORE,
    REQUEST_VALUE as REQUEST_VALUE,
    SHARE_RATIO as SHARE_RATIO,
    SIZE_BINS as SIZE_BINS,
    SIZE_COUNTS as SIZE_COUNTS,
    SKEW_FILE_COUNT as SKEW_FILE_COUNT,
    SKEW_OUTCOME as SKEW_OUTCOME,
    SKEW_RANGE_S as SKEW_RANGE_S,
    SKEW_SPREAD_S as SKEW_SPREAD_S,
    SOURCE_LAYER as SOURCE_LAYER,
    SOURCE_NODE as SOURCE_NODE,
    TARGET_LAYER as TARGET_LAYER,
    TARGET_NODE as TARGET_NODE,
    TIME_BINS as TIME_BINS,
    TIME_COUNTS as TIME_COUNTS,
    TIME_KIND as TIME_KIND,
    TIMED_COUNT as TIMED_COUNT,
    TRANSFER_COUNT as TRANSFER_COUNT,
    TRANSFER_TIME_S as TRANSFER_TIME_S,
    WINDOW as WINDOW,
    WINDOW_BEGAN_S as WINDOW_BEGAN_S,
    WINDOW_CEASED_S as WINDOW_CEASED_S,
    WINDOW_COUNT as WINDOW_COUNT,
    WINDOW_S as WINDOW_S,
)
from warehouse.contracts.period_columns import (
    ABSTRACTION_ERROR as ABSTRACTION_ERROR,
    B_IO as B_IO,
    BYTES_PER_PERIOD as BYTES_PER_PERIOD,
    CANDIDATE_AMPLITUDES as CANDIDATE_AMPLITUDES,
    CANDIDATE_PHASES as CANDIDATE_PHASES,
    CANDIDATES as CANDIDATES,
    CONFIDENCE as CONFIDENCE,
    FALSE_ALARM_PROBABILITY as FALSE_ALARM_PROBABILITY,
    FREQUENCY_HZ as FREQUENCY_HZ,
    IS_DEFAULT as IS_DEFAULT,
    METHOD_OF_PERIOD as METHOD_OF_PERIOD,
    PERIOD_OUTCOME as PERIOD_OUTCOME,
    PERIOD_S as PERIOD_S,
    PERIODICITY_SCORE as PERIODICITY_SCORE,
    R_IO as R_IO,
    REFINED_CONFIDENCE as REFINED_CONFIDENCE,
    SAMPLE_COUNT_OF_SIGNAL as SAMPLE_COUNT_OF_SIGNAL,
    SAMPLING_HZ as SAMPLING_HZ,
    SIGMA_TIME as SIGMA_TIME,
    SIGMA_VOL as SIGMA_VOL,
    WINDOW_END_S as WINDOW_END_S,
    WINDOW_START_S as WINDOW_START_S,
)
from warehouse.contracts.prediction_columns import (
    CHANGE as CHANGE,
    CHANGED_S as CHANGED_S,
    EVALUATION as EVALUATION,
    EVENTS as EVENTS,
    FOLLOWED_ID as FOLLOWED_ID,
    INTERVALS as INTERVALS,
    IS_FINAL as IS_FINAL,
    LAST_PHASE_S as LAST_PHASE_S,
    LONGEST_PERIOD_S as LONGEST_PERIOD_S,
    METHOD_OF_PREDICTION as METHOD_OF_PREDICTION,
    NEXT_BURST_BYTES as NEXT_BURST_BYTES,
    NEXT_BURST_EARLIEST_S as NEXT_BURST_EARLIEST_S,
    NEXT_BURST_HIGH_BYTES as NEXT_BURST_HIGH_BYTES,
    NEXT_BURST_LATEST_S as NEXT_BURST_LATEST_S,
    NEXT_BURST_LOW_BYTES as NEXT_BURST_LOW_BYTES,
    NEXT_BURST_OUTCOME as NEXT_BURST_OUTCOME,
    NEXT_BURST_START_S as NEXT_BURST_START_S,
    PHASE_COUNT as PHASE_COUNT,
    PHASE_STATE as PHASE_STATE,
    PREDICTED_AT as PREDICTED_AT,
    PREDICTED_ON as PREDICTED_ON,
    PREDICTION_OUTCOME as PREDICTION_OUTCOME,
    PROBABILITY as PROBABILITY,
    RUN_NUMBER as RUN_NUMBER,
    SHORTEST_PERIOD_S as SHORTEST_PERIOD_S,
    TRANSITION_CAUSE as TRANSITION_CAUSE,
    WINDOW_STRATEGY as WINDOW_STRATEGY,
)
from warehouse.contracts.signature_columns import (
    APPEARED_BURST_COUNT as APPEARED_BURST_COUNT,
    BACKGROUND_BYTES_PER_S as BACKGROUND_BYTES_PER_S,
    BURST as BURST,
    BURST_COUNT as BURST_COUNT,
    CHANGE_CORRELATION as CHANGE_CORRELATION,
    CHANGE_VOLUME as CHANGE_VOLUME,
    CORRELATION as CORRELATION,
    CROSS_CORRELATION as CROSS_CORRELATION,
    ENDED_S as ENDED_S,
    FALSE_BURST_COUNT as FALSE_BURST_COUNT,
    HIGH_BYTES_PER_S as HIGH_BYTES_PER_S,
    IS_CHANGED as IS_CHANGED,
    LOW_BYTES_PER_S as LOW_BYTES_PER_S,
    METHOD_OF_SIGNATURE as METHOD_OF_SIGNATURE,
    METHOD_PARAMETERS as METHOD_PARAMETERS,
    MISSED_BURST_COUNT as MISSED_BURST_COUNT,
    OFFSET_S as OFFSET_S,
    OUTLIER_JOB_IDS as OUTLIER_JOB_IDS,
    PEAKED_S as PEAKED_S,
    SIGNATURE_OUTCOME as SIGNATURE_OUTCOME,
    STARTED_S as STARTED_S,
    SUPPORT_RATIO as SUPPORT_RATIO,
    TRUE_VOLUME_BYTES as TRUE_VOLUME_BYTES,
    USED_SAMPLE_COUNT as USED_SAMPLE_COUNT,
    VANISHED_BURST_COUNT as VANISHED_BURST_COUNT,
)
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
DURATION_S = Column(
    "duration_s",
    "real",
    "How long it lasted, from start to end; of a signature, how long a run alone takes.",
    unit="s",
    low=0,
)
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
READ_BYTES = Column("read_bytes", "int", "Bytes read in the interval or by the run.", unit="B", low=0)
WRITTEN_BYTES = Column("written_bytes", "int", "Bytes written in the interval or by the run.", unit="B", low=0)
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
    "The highest rate of any interval; of a run, of any step of its sample, and no lower than the mean; of a traced "
    "run, of any module that counts; of a signature, of any second.",
    unit="B/s",
    low=0,
)

# ---- what a job's file system did meanwhile
VOLUME_BYTES = Column(
    "volume_bytes", "real", "Bytes moved: the sum of rate x interval; of a followed run, all so far.", unit="B", low=0
)
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
    "Whether it was measured, and if not, why: no polls of the job's file system were there, or the trace does not "
    "tell the size of every request.",
    choices=("measured", "no_polls", "unknown_sizes"),
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
SUBJECT_ID = Column(
    "subject_id",
    "text",
    "The job's id, the series' name, the traced run's id, a followed trace's name, or the application's id.",
)
SOURCE = Column(
    "source",
    "text",
    "Whose measurement it is: the server side (shared traffic), a series of the subject's own, or a tracer in the "
    "program itself (client).",
    choices=("server", "series", "client"),
)
IS_SHARED_TRAFFIC = Column(
    "is_shared_traffic",
    "bool",
    "Whether other jobs' bytes are in it: true of all that is measured at the server, but not of signatures.",
)
LABEL = Column("label", "text", "When in its run the subject does its I/O.", choices=LABELS)
SECTION_BYTES = Column("section_bytes", "reals", "Bytes in each quarter of the run.", unit="B", low=0)
COV = Column("cov", "real", "Coefficient of variation of the four quarters.", unit="1", low=0)
CLASS_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a label, and if not, why.",
    choices=("classified", "too_short", "no_data", "too_many_gaps", "interval_only", "unknown_sizes"),
)

# ---- traces of clients
TRACE_ID = Column("trace_id", "text", "The traced run: the first 16 hex digits of its trace's SHA-256.")
TRACER = Column("tracer", "text", "What wrote the trace.", choices=("darshan", "recorder", "tmio", "request_events"))
TRACER_VERSION = Column("tracer_version", "text", "The version of the trace's format, as the trace has it.")
UID = Column("uid", "int", "The number of the user who ran the program.")
COMMAND = Column("command", "text", "The command line of the program, as the trace has it.")
PROCESS_COUNT = Column(
    "process_count", "int", "Processes (MPI ranks) of the traced or extrapolated run.", unit="processes", low=0
)
TIME_RESOLUTION_S = Column(
    "time_resolution_s", "real", "The finest difference of times that the trace can tell.", unit="s", low=0
)
TRACED_JOB_ID = Column("traced_job_id", "text", "The job's id, as the trace has it.")
JOB_STARTED_AT = Column("job_started_at", "instant", "When the job to which the trace belongs started.", unit="UTC")
JOB_MATCH = Column(
    "job_match",
    "text",
    "How the trace was joined with the job log: by the job's id, by time and user, not at all (none), or not for "
    "several jobs fit equally well (ambiguous).",
    choices=("job_id", "time_and_user", "none", "ambiguous"),
)
MODULE = Column(
    "module", "text", "The layer of the I/O software that was traced: POSIX, MPIIO, STDIO, H5D, DXT_POSIX and others."
)
MODULE_VERSION = Column("module_version", "int", "The version of the module's records, as the trace has it.")
MODULE_OUTCOME = Column(
    "outcome",
    "text",
    "Whether the module was read: whole (sound), as far as the tracer had kept it (partial), not at all for it is "
    "damaged (unreadable) or of a version that the library cannot read (unsupported).",
    choices=("sound", "partial", "unreadable", "unsupported"),
)
IS_PARTIAL = Column("is_partial", "bool", "Whether the tracer says itself that it had no room for all of it.")
COVERED_RATIO = Column(
    "covered_ratio",
    "real",
    "Share of the bytes, of those that the layer's counters state, that this holds.",
    unit="1",
    low=0,
    high=1,
)
IS_COUNTED = Column(
    "is_counted",
    "bool",
    "Whether its bytes count toward the run's volume: of layers that pass the same bytes on, one does.",
)
RECORD_COUNT = Column("record_count", "int", "Records of the module.", unit="records", low=0)
COUNTERS = Column(
    "counters", "text", "The sums of all of the module's counters that can be added, as JSON, by the tracer's names."
)
FILE_COUNT = Column("file_count", "int", "Files that the module or the run touched.", unit="files", low=0)
FILE_NUMBER = Column(
    "file_number", "int", "The file within the trace; of Darshan, its record id as a signed number (two's complement)."
)
PATH = Column("path", "text", "The file's path or name, as the trace has it.")
MOUNT = Column("mount", "text", "The mount point on which the file lies.")
FILESYSTEM_KIND = Column(
    "filesystem_kind", "text", "The kind of file system, as the trace has it: lustre, gpfs and others."
)
STRIPE_BYTES = Column("stripe_bytes", "int", "The size of a stripe of the file.", unit="B", low=1)
OSTS = Column("osts", "ints", "The storage targets over which the file is striped, in the order of its stripes.")
OST = Column("ost", "int", "The storage target that holds the request's first byte.")
REQUEST = Column("request", "int", "The request's place in the trace, from 0.", low=0)
RANK = Column("rank", "int", "The process's number in the run; -1 where the record is of all together.", low=-1)
HOST = Column("host", "text", "The node on which the process ran.")
OFFSET_BYTES = Column("offset_bytes", "int", "Where in the file the request begins.", unit="B", low=0)
REQUEST_BYTES = Column(
    "request_bytes", "real", "Bytes that the request asked for, or moved where the tracer tells.", unit="B", low=0
)
BEGAN_S = Column("began_s", "real", "When it began: seconds since the trace's own zero.", unit="s")
CEASED_S = Column("ceased_s", "real", "When it was over: seconds since the trace's own zero.", unit="s")
IS_NESTED = Column(
    "is_nested", "bool", "Whether the request was made within another one that is traced too: it counts only once."
)
IS_ASYNC = Column("is_async", "bool", "Whether the program went on meanwhile.")
CALL = Column("call", "int", "The call's place in the process's calls, from 0.", low=0)
LEVEL = Column("level", "int", "How deep the call is: 0 by the program itself, 1 within such a call, and so on.", low=0)
FUNCTION = Column("function", "text", "The function that was called.")
ARGUMENTS = Column("arguments", "text", "Its arguments as logged, separated by spaces; spaces within are underscores.")
BIN_BYTES = Column("bin_bytes", "ints", "Bytes in each bin, counted from the trace's zero.", unit="B", low=0)
BASIS = Column(
    "basis",
    "text",
    "What the signal was made of: single requests, a heat map's bins, or counters alone (interval): then the bytes "
    "are spread evenly from the first to the last of each file's requests, and no period can be found in it.",
    choices=("requests", "heatmap", "interval"),
)
SIGNAL_BYTES_PER_S = Column(
    "signal_bytes_per_s", "reals", "The rate in each step from the trace's zero.", unit="B/s", low=0
)

# ---- counts and times of a traced module's records
OPEN_COUNT = Column("open_count", "int", "Opens.", unit="operations", low=0)
COLLECTIVE_OPEN_COUNT = Column("collective_open_count", "int", "Collective opens.", unit="operations", low=0)
READ_COUNT = Column("read_count", "int", "Reads.", unit="operations", low=0)
WRITE_COUNT = Column("write_count", "int", "Writes.", unit="operations", low=0)
SEEK_COUNT = Column("seek_count", "int", "Seeks.", unit="operations", low=0)
STAT_COUNT = Column("stat_count", "int", "Calls that ask for a file's state.", unit="operations", low=0)
SYNC_COUNT = Column("sync_count", "int", "Calls that flush or synchronize a file.", unit="operations", low=0)
OPENED_S = Column("opened_s", "real", "When the first open began, from the trace's zero.", unit="s")
OPEN_ENDED_S = Column("open_ended_s", "real", "When the last open was over, from the trace's zero.", unit="s")
READ_BEGAN_S = Column("read_began_s", "real", "When the first read began, from the trace's zero.", unit="s")
READ_CEASED_S = Column("read_ceased_s", "real", "When the last read was over, from the trace's zero.", unit="s")
WRITE_BEGAN_S = Column("write_began_s", "real", "When the first write began, from the trace's zero.", unit="s")
WRITE_CEASED_S = Column("write_ceased_s", "real", "When the last write was over, from the trace's zero.", unit="s")
CLOSED_S = Column("closed_s", "real", "When the last close was over, from the trace's zero.", unit="s")
READ_TIME_S = Column("read_time_s", "real", "Time spent in reads, all processes together.", unit="s", low=0)
WRITE_TIME_S = Column(
    "write_time_s", "real", "Time spent in writes and in calls that flush, all processes together.", unit="s", low=0
)
METADATA_TIME_S = Column(
    "metadata_time_s",
    "real",
    "Time spent in opens, seeks, stats and the like, all processes together.",
    unit="s",
    low=0,
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
