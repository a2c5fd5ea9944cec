"""Tables of client traces; each input is one traced run."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_TRACER_VERSION = Column("tracer_version", "text", "The version of the trace's format, as the trace has it.")
_COMMAND = Column("command", "text", "The command line of the program, as the trace has it.", hides="words")
_TIME_RESOLUTION_S = Column("time_resolution_s", "real", "Resolution of the trace's times.", low=0)
_MODULE_OUTCOME = Column(
    "outcome",
    "text",
    (
        "How the module was read: completely (sound), as far as the tracer recorded it (partial), or not at all, "
        "because it is damaged (unreadable) or its version is not supported by the library (unsupported)."
    ),
    choices=("sound", "partial", "unreadable", "unsupported"),
)
_IS_PARTIAL = Column("is_partial", "bool", "Whether the tracer reports that it ran out of memory for it.")
_IS_COUNTED = Column(
    "is_counted",
    "bool",
    "Whether its bytes count toward the run's volume: of layers that pass on the same bytes, only one counts.",
)
_RECORD_COUNT = Column("record_count", "int", "Records of the module.")
_COUNTERS = Column("counters", "text", "Sums of the module's additive counters, as JSON, by the tracer's names.")
_IS_NESTED = Column(
    "is_nested", "bool", "Whether the call is nested within another traced file call, and therefore not counted."
)
#: counters that a tracer keeps per file or module
_COUNTS = (
    c.READ_BYTES.optional(),
    c.WRITTEN_BYTES.optional(),
    c.OPEN_COUNT.optional(),
    Column("collective_open_count", "int", "Collective opens.", unit="operations", nullable=True),
    c.READ_COUNT.optional(),
    c.WRITE_COUNT.optional(),
    Column("seek_count", "int", "Seeks.", unit="operations", nullable=True),
    Column("stat_count", "int", "Calls that query a file's status.", unit="operations", nullable=True),
    c.SYNC_COUNT.optional(),
    Column("open_start_s", "real", "Start of the first open, since the trace's zero.", nullable=True),
    Column("open_end_s", "real", "End of the last open, since the trace's zero.", nullable=True),
    Column("read_start_s", "real", "Start of the first read, since the trace's zero.", nullable=True),
    Column("read_end_s", "real", "End of the last read, since the trace's zero.", nullable=True),
    Column("write_start_s", "real", "Start of the first write, since the trace's zero.", nullable=True),
    Column("write_end_s", "real", "End of the last write, since the trace's zero.", nullable=True),
    Column("close_end_s", "real", "End of the last close, since the trace's zero.", nullable=True),
    Column("read_time_s", "real", "Time spent in reads, summed over processes.", low=0, nullable=True),
    Column(
        "write_time_s",
        "real",
        "Time spent in writes and flushing calls, summed over processes.",
        low=0,
        nullable=True,
    ),
    Column(
        "metadata_time_s",
        "real",
        "Time spent in opens, seeks, stats and similar calls, summed over processes.",
        low=0,
        nullable=True,
    ),
)
#: columns of a file's record that cannot be summed over files
_OF_ONE_FILE = (
    Column("read_extent_bytes", "int", "Position of the last byte read, from 1.", low=0, nullable=True),
    Column("written_extent_bytes", "int", "Position of the last byte written, from 1.", low=0, nullable=True),
    Column(
        "fastest_time_s",
        "real",
        "Time of the fastest process in calls to the file, for records of all processes.",
        low=0,
        nullable=True,
    ),
    Column(
        "slowest_time_s",
        "real",
        "Time of the slowest process in calls to the file, for records of all processes.",
        low=0,
        nullable=True,
    ),
    Column("fastest_bytes", "int", "Bytes that the fastest process moved.", low=0, nullable=True),
    Column("slowest_bytes", "int", "Bytes that the slowest process moved.", low=0, nullable=True),
)
_TRACED_BY = (c.ENDED_ON.optional(), c.TRACE_ID, c.TRACER, _TRACER_VERSION.optional())

TRACES = Table(
    name="traces",
    layer="landed",
    grain="one row per traced run",
    key=("trace_id",),
    columns=(
        *_TRACED_BY,
        c.JOB_ID.optional(),
        c.USER.optional(),
        Column("uid", "int", "The number of the user who ran the program.", nullable=True, hides="uid"),
        c.APPLICATION.optional(),
        _COMMAND.optional(),
        c.PROCESS_COUNT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        c.DURATION_S.optional(),
        _TIME_RESOLUTION_S.optional(),
        c.SOURCE_FILE,
    ),
    is_published=False,
)

TRACE_MODULES = Table(
    name="trace_modules",
    layer="landed",
    grain="one row per traced run and module, with the outcome of its reading",
    key=("trace_id", "module"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.MODULE,
        Column("module_version", "int", "The version of the module's records, as the trace has it.", nullable=True),
        _MODULE_OUTCOME,
        c.REASON.optional(),
        _IS_PARTIAL,
        _RECORD_COUNT.optional(),
        _COUNTERS.optional(),
        c.SOURCE_FILE,
    ),
    is_published=False,
)

TRACE_FILES = Table(
    name="trace_files",
    layer="landed",
    grain="one row per traced run and file",
    key=("trace_id", "file_number"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.FILE_NUMBER,
        Column("path", "text", "The file's path or name, as the trace has it.", nullable=True, hides="path"),
        Column("mount", "text", "Mount point of the file.", nullable=True, hides="mount"),
        Column(
            "filesystem_kind",
            "text",
            "The kind of file system, as the trace has it: lustre, gpfs and others.",
            nullable=True,
        ),
        Column("stripe_bytes", "int", "The size of a stripe of the file.", low=1, nullable=True),
        Column(
            "osts",
            "ints",
            "The storage targets over which the file is striped, in the order of its stripes.",
            nullable=True,
        ),
    ),
    is_published=False,
)

TRACE_RECORDS = Table(
    name="trace_records",
    layer="landed",
    grain="one row per traced run, module, file and rank",
    key=("trace_id", "module", "file_number", "rank"),
    columns=(c.ENDED_ON.optional(), c.TRACE_ID, c.MODULE, c.FILE_NUMBER, c.RANK, *_COUNTS, *_OF_ONE_FILE),
    is_published=False,
)

TRACE_HEATMAPS = Table(
    name="trace_heatmaps",
    layer="landed",
    grain="one row per traced run, module, rank and direction",
    key=("trace_id", "module", "rank", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.MODULE,
        c.RANK,
        c.DIRECTION,
        c.INTERVAL_S,
        c.STEP_COUNT,
        Column("bin_bytes", "ints", "Bytes in each bin, counted from the trace's zero."),
    ),
    partition="ended_on",
)

TRACE_REQUESTS = Table(
    name="trace_requests",
    layer="landed",
    grain="one row per read or write request of a traced run",
    key=("trace_id", "request"),
    columns=(
        c.TRACE_ID,
        Column("request", "int", "Number of the request in the trace, from 0.", low=0),
        c.MODULE,
        c.RANK,
        c.HOST.optional(),
        c.FILE_NUMBER.optional(),
        c.DIRECTION,
        Column("offset_bytes", "int", "Offset of the request in the file.", nullable=True),
        Column(
            "request_bytes",
            "real",
            "Bytes moved by the request, or requested if the tracer does not record the bytes moved.",
            nullable=True,
        ),
        c.START_S,
        c.END_S,
        _IS_NESTED,
        c.IS_ASYNC,
        Column("ost", "int", "Storage target of the request's first byte.", nullable=True),
    ),
    is_published=False,
)

TRACE_METADATA = Table(
    name="trace_metadata",
    layer="landed",
    grain="one row per call of a traced run to a file that moves no bytes: opens, closes, seeks, stats and the like",
    key=("trace_id", "metadata_call"),
    columns=(
        c.TRACE_ID,
        Column("metadata_call", "int", "Number of the call in the trace, from 0.", low=0),
        c.MODULE,
        c.RANK,
        c.FILE_NUMBER.optional(),
        Column("operation", "text", "Kind of the call.", choices=c.METADATA_OPERATIONS),
        c.START_S,
        c.END_S,
        _IS_NESTED,
    ),
    is_published=False,
)

TRACE_CALLS = Table(
    name="trace_calls",
    layer="landed",
    grain="one row per traced call",
    key=("trace_id", "rank", "call"),
    columns=(
        c.TRACE_ID,
        c.RANK,
        Column("call", "int", "Number of the call in the process, from 0.", low=0),
        Column(
            "level",
            "int",
            "Nesting level of the call: 0 for calls of the program, 1 for calls within these, and so on.",
            low=0,
        ),
        c.MODULE,
        Column("function", "text", "The function that was called."),
        Column(
            "arguments",
            "text",
            "Its arguments as logged, separated by spaces; spaces within are underscores.",
            hides="words",
        ),
        c.START_S,
        c.END_S,
    ),
    is_published=False,
)

TRACE_JOBS = Table(
    name="trace_jobs",
    layer="stage",
    grain="one row per traced run, with the job to which it belongs",
    key=("trace_id",),
    columns=(
        *_TRACED_BY,
        c.SOURCE_FILE,
        Column(
            "job_match",
            "text",
            (
                "How the trace was matched with the job log: by the job's id, by time and user, not at all (none), or "
                "not because several jobs fit equally well (ambiguous)."
            ),
            choices=("job_id", "time_and_user", "none", "ambiguous"),
        ),
        c.CLUSTER.optional(),
        c.JOB_ID.optional(),
        Column("job_started_at", "instant", "When the job to which the trace belongs started.", nullable=True),
        Column("traced_job_id", "text", "The job's id, as the trace has it.", nullable=True),
        c.USER.optional(),
        c.APPLICATION.optional(),
        _COMMAND.optional(),
        c.PROCESS_COUNT.optional(),
        c.NODE_COUNT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        c.DURATION_S.optional(),
        _TIME_RESOLUTION_S.optional(),
    ),
    partition="ended_on",
)

TRACE_COUNTERS = Table(
    name="trace_counters",
    layer="stage",
    grain="one row per traced run and module",
    key=("trace_id", "module"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.CLUSTER.optional(),
        c.JOB_ID.optional(),
        c.SOURCE_FILE,
        c.MODULE,
        _MODULE_OUTCOME,
        c.REASON.optional(),
        _IS_PARTIAL,
        c.COVERED_RATIO.optional(),
        _IS_COUNTED,
        _RECORD_COUNT.optional(),
        c.FILE_COUNT.optional(),
        *_COUNTS,
        _COUNTERS.optional(),
    ),
    partition="ended_on",
)

TRACE_SIGNALS = Table(
    name="trace_signals",
    layer="samples",
    grain="one row per traced run, module, direction and kind of call (blocking or asynchronous)",
    key=("trace_id", "module", "direction", "is_async"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.MODULE,
        c.DIRECTION,
        c.IS_ASYNC,
        c.BASIS_OF_SIGNAL,
        _IS_COUNTED,
        c.COVERED_RATIO.optional(),
        c.VOLUME_BYTES,
        c.PEAK_BYTES_PER_S,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SIGNAL_BYTES_PER_S,
    ),
    partition="ended_on",
)
