"""The columns that several nouns share: the same quantity has the same name, unit and meaning in every table."""

from iosig.warehouse.contracts.types import Column

DIRECTIONS = ("read", "write", "unstated")
#: metadata operations; other: views, sizes, names, permissions and the like
METADATA_OPERATIONS = ("open", "close", "seek", "stat", "sync", "other")


# ---- who and what ran
CLUSTER = Column("cluster", "text", "The machine on which the job ran; `default` where the log does not say.")
JOB_ID = Column("job_id", "text", "The scheduler's id of the job, array task or step, as it writes it.", hides="id")
SCHEDULER_ID = Column(
    "scheduler_id", "text", "The scheduler's id that stands in a server's name of the job, without a step.", hides="id"
)
USER = Column("user", "text", "The user who submitted the job.", hides="name")
APPLICATION = Column(
    "application", "text", "The program that ran: the job's or step's name, after the site's own rule.", hides="name"
)
APPLICATION_ID = Column(
    "application_id",
    "text",
    "One application of one user at one size: user/application/node_count, a slash in the user as %2F.",
)
NODE_COUNT = Column("node_count", "int", "Nodes that the job was given.")

# ---- when
STARTED_AT = Column("started_at", "instant", "When the job started.")
ENDED_AT = Column("ended_at", "instant", "When the job ended.")
ENDED_ON = Column("ended_on", "date", "The UTC day on which the job or series ended; NULL where it is not known.")
DURATION_S = Column(
    "duration_s", "real", "How long it lasted, from start to end; of a signature, how long a run alone takes.", low=0
)
INTERVAL_S = Column(
    "interval_s",
    "real",
    "The length of the interval that a poll, a scrape or a grid step covers; a year is the longest.",
    low=1e-6,
    high=366 * 86400,
)

# ---- what storage moved
FILESYSTEM = Column(
    "filesystem", "text", "The file system; `default` where neither the input nor the command names it."
)
READ_BYTES_PER_S = Column("read_bytes_per_s", "real", "Bytes read per second over the interval.")
WRITE_BYTES_PER_S = Column("write_bytes_per_s", "real", "Bytes written per second over the interval.")
BYTES_PER_S = Column("bytes_per_s", "real", "Bytes per second over the interval.")
READ_BYTES = Column("read_bytes", "int", "Bytes read in the interval or by the run.")
WRITTEN_BYTES = Column("written_bytes", "int", "Bytes written in the interval or by the run.")
FLAG = Column(
    "flag",
    "text",
    "Why the interval has no value (the counter was reset or fell, the poll is marked missing, nothing was "
    "recorded any more), or a corrected one (retracted: bytes that the counter took back later are not counted).",
    choices=("reset", "decrease", "missing", "not_recorded", "retracted"),
)
DIRECTION = Column("direction", "text", "Which way the bytes went, seen from the application.", choices=DIRECTIONS)

# ---- a day of polls
POLLED_ON = Column("polled_on", "date", "The UTC day of the poll's right edge.")
EXPECTED_CONTROLLER_COUNT = Column("expected_controller_count", "int", "Controllers that reported at all on that day.")
POLL_COUNT = Column("poll_count", "int", "Polls that hold a value; of a run, in that direction.")
MISSING_RATIO = Column("missing_ratio", "real", "Share of the expected polls, or scrapes, that hold no value.")
GRID_PHASE_S = Column(
    "grid_phase_s",
    "real",
    "Where in the interval the polls, or scrapes, fall: seconds since 1970 modulo the interval.",
    low=0,
)
PEAK_BYTES_PER_S = Column(
    "peak_bytes_per_s",
    "real",
    "The highest rate of any interval; of a run, of any step of its sample, and no lower than the mean; of a traced "
    "run, of any module that counts; of a signature, of any second.",
)

# ---- counters that servers keep
INTERVAL_STARTED_AT = Column("interval_started_at", "instant", "The scrape before: what rose did so after it.")
INTERVAL_ENDED_AT = Column("interval_ended_at", "instant", "The scrape that saw what rose.")
COUNTED_FROM_AT = Column("coverage_started_at", "instant", "The first scrape since which it is known what rose.")
COUNTED_UNTIL_AT = Column("coverage_ended_at", "instant", "The last scrape.")
OPEN_COUNT = Column("open_count", "int", "Opens.", unit="operations")
READ_COUNT = Column("read_count", "int", "Reads.", unit="operations")
WRITE_COUNT = Column("write_count", "int", "Writes.", unit="operations")
TARGET = Column("target", "text", "The target, server or client whose counter it is.", hides="target")
METADATA_OPERATION_COUNT = Column(
    "metadata_operation_count",
    "int",
    "Operations on names, attributes and open files that servers counted by job: all that are no reads or writes. In "
    "`job_io` and `job_io_sources` those of the run, whatever the direction: the same number in both rows.",
    unit="operations",
)
SYNC_COUNT = Column("sync_count", "int", "Calls that flush or synchronize a file.", unit="operations")

LABEL = Column(
    "label",
    "text",
    "When in its run the subject does its I/O.",
    choices=("START", "END", "HILL", "CANYON", "UNIFORM", "OTHER", "NO_USAGE"),
)
CV = Column("cv", "real", "Coefficient of variation of the four quarters.", unit="1", low=0)

# ---- bursts of signatures
BURST = Column("burst", "int", "The burst's number, from 0, in order of time.", low=0)

# ---- traffic of a job's file system during the job
VOLUME_BYTES = Column("volume_bytes", "real", "Bytes moved: the sum of rate x interval; of a followed run, all so far.")
MEAN_BYTES_PER_S = Column(
    "mean_bytes_per_s", "real", "Volume over the time that the polls of a controller cover on average."
)
EXACT_BYTES = Column("exact_bytes", "real", "Bytes of the exact sample.")
GRID_STARTED_AT = Column("grid_started_at", "instant", "The left edge of the sample's first grid step.")
SAMPLE_BYTES_PER_S = Column(
    "sample_bytes_per_s",
    "reals",
    "The rate in each step of the grid: of the file system, or of the run alone in `exact_samples`; NULL where nothing "
    "reported.",
)
STEP_COUNT = Column("step_count", "int", "Steps of the sample's grid.")
SAMPLE_COUNT = Column("sample_count", "int", "Samples, which are runs with a known end, in the set.")
FIRST_RUN_STARTED_AT = Column("first_run_started_at", "instant", "When the first run started.")
LAST_RUN_ENDED_AT = Column("last_run_ended_at", "instant", "When the last run ended.")

# ---- subjects of signals
SUBJECT_KIND = Column(
    "subject_kind", "text", "What the row is about.", choices=("job", "series", "trace", "application")
)
SUBJECT_ID = Column(
    "subject_id",
    "text",
    "The job's id, the series' name, the traced run's id, a followed trace's name, or the application's id.",
    hides="id",
)
SOURCE = Column(
    "source",
    "text",
    "Whose measurement it is: the server side (shared traffic), what servers counted for the job (jobstats), a series "
    "of the subject's own, or a tracer in the program itself (client).",
    choices=("server", "jobstats", "series", "client"),
)
EXPLAINED_BYTES = Column("attributed_bytes", "real", "Bytes that the signatures of runs explain.")
EXPECTED_CORRELATION = Column(
    "expected_correlation",
    "real",
    "The expected correlation of the signature with the truth, calibrated on simulated sites. It rests on how well "
    "runs predict each other and how the signature fits them. NULL without a signature, and in older releases.",
    unit="1",
    low=0,
    high=1,
)
IS_USED = Column(
    "is_training_run",
    "bool",
    "Whether the signature rests on the run's exact sample, among others: then the comparison is not held out.",
)
BASIS = Column(
    "basis",
    "text",
    "What the answer rests on: bytes that servers counted for the run (counted), requests of a tracer in the program "
    "(traced), a series of the subject's own (series), an application's signature (signature), or, for a run of which "
    "none of these exists, the signature of its application (inferred). All traffic of a file system (polled) is only "
    "analyzed by `iosig period` of a file of polls.",
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
    BASIS,
)

# ---- traces of clients
TRACE_ID = Column("trace_id", "text", "The traced run: the first 16 hex digits of its trace's SHA-256.")
MODULE = Column(
    "module", "text", "The layer of the I/O software that was traced: POSIX, MPIIO, STDIO, H5D, DXT_POSIX and others."
)
IS_ASYNC = Column("is_async", "bool", "Whether the program went on meanwhile.")
PROCESS_COUNT = Column("process_count", "int", "Processes (MPI ranks) of the traced or extrapolated run.")
COVERED_RATIO = Column(
    "covered_ratio", "real", "Share of the bytes, of those that the layer's counters state, that this holds."
)
FILE_COUNT = Column("file_count", "int", "Files that the module or the run touched.")
FILE_NUMBER = Column(
    "file_number", "int", "The file within the trace; of Darshan, its record id as a signed number (two's complement)."
)
RANK = Column("rank", "int", "The process's number in the run; -1 where the record is of all together.", low=-1)
START_S = Column("start_s", "real", "When it began: seconds since the trace's own zero.")
END_S = Column("end_s", "real", "When it was over: seconds since the trace's own zero.")
REQUEST_COUNT = Column("request_count", "int", "Requests that the network is made of; of a followed run, all so far.")

# ---- periods
IS_DEFAULT = Column("is_default", "bool", "Whether this is the method whose answer to take if only one is wanted.")
WINDOW_START_S = Column(
    "window_start_s",
    "real",
    "Start of the time window that was analyzed: since the run's start, a trace's zero, or on the series' own clock.",
)
WINDOW_END_S = Column("window_end_s", "real", "End of the time window that was analyzed.")
SAMPLING_HZ = Column("sampling_hz", "real", "Samples per second of the signal that was judged.")
SAMPLE_COUNT_OF_SIGNAL = Column("sample_count", "int", "Samples of the signal that was judged.")
FREQUENCY_HZ = Column("frequency_hz", "real", "Cycles per second of the dominant period.")
PERIOD_S = Column("period_s", "real", "The dominant period: from one I/O phase to the next.")
CONFIDENCE = Column(
    "confidence",
    "real",
    "The method's own confidence in its period: FTIO's c_d or c_a; for null_tested, how even the cycles are.",
)
FALSE_ALARM_PROBABILITY = Column(
    "false_alarm_probability",
    "real",
    "How probable it is that a signal without memory looks so periodic: idle times that do not depend on how long they "
    "last (white noise, bursts at random times), or samples that depend on the last one only (red noise). What keeps a "
    "least distance, ticks in blocks or oscillates by itself is regular in that sense. For AUTOPERIOD, that white "
    "noise has so high a peak. Where several claims share one level, the segments of a signal or the nodes of a run, "
    "times what each one's share takes: all are to be compared with the same level.",
)
HOST = Column("host", "text", "The node on which the process ran.", hides="node")

# ---- quality and history
SOURCE_FILE = Column("source_file", "text", "The file's name as it was landed.", hides="path")
LINE = Column("line", "int", "The line in that file, counted from 1; for formats without lines, the record.", low=1)
REASON = Column("reason", "text", "What is wrong, in one sentence.", hides="said")
TABLE_NAME = Column("table_name", "text", "The table that was checked.")
RULE = Column("rule", "text", "The rule that the row breaks, by its name in the table's suite.")
DAY = Column("day", "date", "The UTC day to which the row belongs; NULL where it has none.", unit="UTC")
ROW_JSON = Column("row_json", "text", "The row that was taken out, as JSON.")
