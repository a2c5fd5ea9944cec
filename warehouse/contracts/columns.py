"""Columns that several modules share: the same quantity has the same name, unit and meaning in every table."""

from iosig.warehouse.contracts.types import Column

DIRECTIONS = ("read", "write", "unstated")
#: metadata operations; other: views, sizes, names, permissions and the like
METADATA_OPERATIONS = ("open", "close", "seek", "stat", "sync", "other")


# ---- jobs and their identity
CLUSTER = Column("cluster", "text", "The cluster that ran the job; `default` if the log does not name one.")
MACHINE = Column(
    "machine",
    "text",
    "The cluster of the runs, or its name in [clusters]; `default` if the log does not name a cluster.",
)
JOB_ID = Column(
    "job_id", "text", "The scheduler's id of the job, array task or step, as written in the log.", hides="id"
)
SCHEDULER_ID = Column(
    "scheduler_id", "text", "The scheduler's job id in the server's name of the job, without a step.", hides="id"
)
USER = Column("user", "text", "The user who submitted the job.", hides="name")
APPLICATION = Column(
    "application", "text", "The program: the job's or step's name, reduced by the site's pattern.", hides="name"
)
APPLICATION_ID = Column(
    "application_id",
    "text",
    "Id of an application of one user at one size on one machine: user@machine/application/node_count, with user and "
    "machine percent-encoded, and without @machine if the cluster is unknown.",
)
NODE_COUNT = Column("node_count", "int", "Allocated nodes of the job.")

# ---- times of jobs
STARTED_AT = Column("started_at", "instant", "When the job started.")
ENDED_AT = Column("ended_at", "instant", "When the job ended.")
ENDED_ON = Column("ended_on", "date", "The UTC day on which the job or series ended; NULL if unknown.")
DURATION_S = Column(
    "duration_s", "real", "Duration from start to end; for a signature, the duration of a run alone.", low=0
)
INTERVAL_S = Column(
    "interval_s",
    "real",
    "Interval of a poll, a scrape or a grid step, at most one year.",
    low=1e-6,
    high=366 * 86400,
)

# ---- traffic of file systems
FILESYSTEM = Column("filesystem", "text", "The file system; `default` if neither the input nor the command names it.")
READ_BYTES_PER_S = Column("read_bytes_per_s", "real", "Bytes read per second over the interval.")
WRITE_BYTES_PER_S = Column("write_bytes_per_s", "real", "Bytes written per second over the interval.")
BYTES_PER_S = Column("bytes_per_s", "real", "Bytes per second over the interval.")
READ_BYTES = Column("read_bytes", "int", "Bytes read in the interval or by the run.")
WRITTEN_BYTES = Column("written_bytes", "int", "Bytes written in the interval or by the run.")
FLAG = Column(
    "flag",
    "text",
    (
        "Why the interval has no value (counter reset or decrease, poll marked missing, end of recording), or a "
        "corrected one (retracted: bytes that the counter later subtracted are not counted)."
    ),
    choices=("reset", "decrease", "missing", "not_recorded", "retracted"),
)
DIRECTION = Column("direction", "text", "Direction of the bytes, as seen from the application.", choices=DIRECTIONS)
METRIC = Column(
    "metric",
    "text",
    (
        "What the row's numbers count: bytes, or reads or writes as storage servers count them (operations). The "
        "numbers of the other metric are NULL. Operations are known where polls have them."
    ),
    choices=("bytes", "operations"),
    initial="bytes",
)

# ---- days of polls
POLLED_ON = Column("polled_on", "date", "The UTC day of the poll's right edge.")
EXPECTED_CONTROLLER_COUNT = Column(
    "expected_controller_count", "int", "Controllers with at least one report on that day."
)
POLL_COUNT = Column("poll_count", "int", "Polls with a value; for a run, in that direction.")
MISSING_RATIO = Column("missing_ratio", "real", "Share of the expected polls or scrapes without a value.")
GRID_PHASE_S = Column(
    "grid_phase_s",
    "real",
    "Phase of the polls or scrapes: seconds since 1970 modulo the interval.",
    low=0,
)
PEAK_BYTES_PER_S = Column(
    "peak_bytes_per_s",
    "real",
    (
        "Highest rate of any interval. For a run: of any step of its sample, and at least the mean. For a traced run: "
        "of any counted module. For a signature: of any second."
    ),
)

# ---- counters that servers keep
INTERVAL_STARTED_AT = Column("interval_started_at", "instant", "Previous scrape, which precedes the increase.")
INTERVAL_ENDED_AT = Column("interval_ended_at", "instant", "The scrape that observed the increase.")
COUNTED_FROM_AT = Column("coverage_started_at", "instant", "The first scrape from which increases are known.")
COUNTED_UNTIL_AT = Column("coverage_ended_at", "instant", "The last scrape.")
OPEN_COUNT = Column("open_count", "int", "Opens.", unit="operations")
READ_COUNT = Column("read_count", "int", "Reads.", unit="operations")
WRITE_COUNT = Column("write_count", "int", "Writes.", unit="operations")
TARGET = Column("target", "text", "The target, server or client of the counter.", hides="target")
METADATA_OPERATION_COUNT = Column(
    "metadata_operation_count",
    "int",
    (
        "Operations other than reads and writes that servers counted by job. In `job_io` and `job_io_sources`, all of "
        "the run: both directions have the same number."
    ),
    unit="operations",
)
SYNC_COUNT = Column("sync_count", "int", "Calls that flush or synchronize a file.", unit="operations")

LABEL = Column(
    "label",
    "text",
    "Part of the run in which the subject does its I/O.",
    choices=("START", "END", "HILL", "CANYON", "UNIFORM", "OTHER", "NO_USAGE"),
)
SECTION_OPERATIONS = Column("section_operations", "reals", "Operations in each quarter of the run.")
CV = Column("cv", "real", "Coefficient of variation of the four quarters.", unit="1", low=0)

# ---- bursts of signatures
BURST = Column("burst", "int", "The burst's number, from 0, in order of time.", low=0)

# ---- traffic of a job's file system during the job
VOLUME_BYTES = Column(
    "volume_bytes", "real", "Bytes moved: the sum of rate x interval; for a followed run, all so far."
)
MEAN_BYTES_PER_S = Column("mean_bytes_per_s", "real", "Volume divided by the mean polled time of the controllers.")
EXACT_BYTES = Column("exact_bytes", "real", "Bytes of the exact sample.")
GRID_STARTED_AT = Column("grid_started_at", "instant", "The left edge of the sample's first grid step.")
SAMPLE_BYTES_PER_S = Column(
    "sample_bytes_per_s",
    "reals",
    (
        "Rate in each step of the grid: of the file system, or of the run alone (`exact_samples`, `trace_samples`); "
        "NULL without reports."
    ),
)
SAMPLE_OPERATIONS_PER_S = Column(
    "sample_operations_per_s",
    "reals",
    (
        "Operations per second in each step of the grid: of the file system, or in `metadata_rates` of the run alone; "
        "NULL where they were not counted."
    ),
)
VOLUME_OPERATIONS = Column(
    "volume_operations",
    "real",
    "Reads or writes, as storage servers count their requests: the sum of rate x interval.",
)
MEAN_OPERATIONS_PER_S = Column("mean_operations_per_s", "real", "Mean number of operations per second.")
PEAK_OPERATIONS_PER_S = Column(
    "peak_operations_per_s",
    "real",
    "Highest number of operations per second. Counted by job: between two scrapes. For a signature: of any second.",
)
STEP_COUNT = Column("step_count", "int", "Steps of the sample's grid.")
SAMPLE_COUNT = Column(
    "sample_count",
    "int",
    "Samples in the set. A sample is a run with a known end: cut out of polls, counted by job, or traced.",
)
FIRST_RUN_STARTED_AT = Column("first_run_started_at", "instant", "When the first run started.")
LAST_RUN_ENDED_AT = Column("last_run_ended_at", "instant", "When the last run ended.")

# ---- subjects of signals
SUBJECT_KIND = Column("subject_kind", "text", "Kind of the subject.", choices=("job", "series", "trace", "application"))
SUBJECT_ID = Column(
    "subject_id",
    "text",
    "The job's id, the series' name, the traced run's id, a followed trace's name, or the application's id.",
    hides="id",
)
SOURCE = Column(
    "source",
    "text",
    (
        "Origin of the measurement: shared traffic (server), counters by job (jobstats), the subject's own series "
        "(series), or a tracer in the program (client)."
    ),
    choices=("server", "jobstats", "series", "client"),
)
EXPLAINED_BYTES = Column("attributed_bytes", "real", "Bytes attributed to runs by their signatures.")
EXPECTED_CORRELATION = Column(
    "expected_correlation",
    "real",
    (
        "The expected correlation of the signature with the truth, calibrated on simulated sites. It is computed from "
        "how well runs predict each other, and how well the signature fits them. NULL without a signature, and in "
        "older releases."
    ),
    unit="1",
    low=0,
    high=1,
)
IS_USED = Column(
    "is_training_run",
    "bool",
    (
        "Whether the signature was computed from the run's own sample, among others. If so, the comparison is not "
        "held out."
    ),
)
BASIS = Column(
    "basis",
    "text",
    (
        "Basis of the result: bytes counted by servers for the run (counted), requests recorded by a tracer (traced), "
        "the subject's own series (series), an application's signature (signature), or, for a run without any of "
        "these, the signature of its application (inferred). All traffic of a file system (polled) is only analyzed by "
        "`iosig period` of a file of polls."
    ),
    choices=("counted", "traced", "series", "signature", "inferred", "polled"),
)
#: the subject of a class or period
JUDGED = (
    ENDED_ON.optional(),
    SUBJECT_KIND,
    CLUSTER.optional(),
    SUBJECT_ID,
    STARTED_AT.optional(),
    FILESYSTEM.optional(),
    DIRECTION,
    METRIC,
    BASIS,
)

# ---- traces of clients
TRACE_ID = Column("trace_id", "text", "The traced run: the first 16 hex digits of its trace's SHA-256.")
MODULE = Column(
    "module", "text", "The layer of the I/O software that was traced: POSIX, MPIIO, STDIO, H5D, DXT_POSIX and others."
)
IS_ASYNC = Column("is_async", "bool", "Whether the program continued during the requests (asynchronous I/O).")
PROCESS_COUNT = Column("process_count", "int", "Processes (MPI ranks) of the traced or extrapolated run.")
COVERED_RATIO = Column("covered_ratio", "real", "Covered share of the bytes in the layer's counters.")
FILE_COUNT = Column("file_count", "int", "Files that the module or the run touched.")
FILE_NUMBER = Column(
    "file_number", "int", "The file within the trace; of Darshan, its record id as a signed number (two's complement)."
)
RANK = Column("rank", "int", "Number of the process in the run; -1 for records of all processes.", low=-1)
START_S = Column("start_s", "real", "Start, in seconds since the trace's zero.")
END_S = Column("end_s", "real", "End, in seconds since the trace's zero.")
REQUEST_COUNT = Column("request_count", "int", "Number of requests of the network; for a followed run, all so far.")

# ---- periods
IS_DEFAULT = Column(
    "is_default",
    "bool",
    "Whether this is the default result: that of the default method, in bytes. Operations have that method only.",
)
METHOD_PARAMETERS = Column(
    "method_parameters",
    "text",
    "The method's parameters, as JSON: thresholds, seeds, and each choice between a paper's rules and ours.",
)
WINDOW_START_S = Column(
    "window_start_s",
    "real",
    "Start of the time window that was analyzed: since the run's start, a trace's zero, or on the series' own clock. "
    "FTIO's methods analyze the time from the first to the last I/O.",
)
WINDOW_END_S = Column("window_end_s", "real", "End of the time window that was analyzed.")
SAMPLING_HZ = Column("sampling_hz", "real", "Samples per second of the analyzed signal.")
SAMPLE_COUNT_OF_SIGNAL = Column("sample_count", "int", "Samples of the analyzed signal.")
TRACER = Column("tracer", "text", "The tracer.", choices=("darshan", "recorder", "tmio", "dftracer", "request_events"))
BASIS_OF_SIGNAL = Column(
    "basis",
    "text",
    (
        "Basis of the signal: single requests, a heat map's bins, or counters alone (interval). In the last "
        "case, bytes are spread evenly from the first to the last request of each file, and no period can be "
        "detected."
    ),
    choices=("requests", "heatmap", "interval"),
)
SIGNAL_BYTES_PER_S = Column("signal_bytes_per_s", "reals", "Rate in each step since the trace's zero.")
TRACED_BYTES = Column("traced_bytes", "real", "Bytes that the run's traces counted in the row's direction.")
FREQUENCY_HZ = Column("frequency_hz", "real", "Cycles per second of the dominant period.")
PERIOD_S = Column("period_s", "real", "The dominant period: from one I/O phase to the next.")
CONFIDENCE = Column(
    "confidence",
    "real",
    "Confidence of the method in the period: FTIO's c_d or c_a; for null_tested, the regularity of the cycles.",
)
FALSE_ALARM_PROBABILITY = Column(
    "false_alarm_probability",
    "real",
    (
        "False-alarm probability: the probability that a memoryless signal (white noise, bursts at random times) or a "
        "first-order autoregressive one (red noise) appears at least as periodic. Signals with a minimum distance "
        "between bursts, with blocks of ticks, or with an oscillation count as regular. For AUTOPERIOD, the "
        "probability of the peak under white noise. Corrected for multiple tests (segments of a signal, nodes of a "
        "run), so that all values are compared with the same level."
    ),
)
HOST = Column("host", "text", "The node on which the process ran.", hides="node")

# ---- quality and history
SOURCE_FILE = Column("source_file", "text", "Name of the landed file.", hides="path")
LINE = Column("line", "int", "Line in the file, from 1; for formats without lines, the record.", low=1)
REASON = Column("reason", "text", "The problem, in one sentence.", hides="said")
TABLE_NAME = Column("table_name", "text", "The table that was checked.")
RULE = Column("rule", "text", "Name of the broken rule in the table's suite.")
DAY = Column("day", "date", "The UTC day of the row; NULL without one.", unit="UTC")
ROW_JSON = Column("row_json", "text", "The quarantined row, as JSON.")
