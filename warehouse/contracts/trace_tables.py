"""The tables of client-side traces, as `tables` has the others: what a row is, its key, its columns."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Table

# ---- landed traces: one input is one traced run

#: what a tracer counts of a file or a module
_COUNTS = (
    c.READ_BYTES.optional(),
    c.WRITTEN_BYTES.optional(),
    c.OPEN_COUNT.optional(),
    c.COLLECTIVE_OPEN_COUNT.optional(),
    c.READ_COUNT.optional(),
    c.WRITE_COUNT.optional(),
    c.SEEK_COUNT.optional(),
    c.STAT_COUNT.optional(),
    c.SYNC_COUNT.optional(),
    c.OPENED_S.optional(),
    c.OPEN_ENDED_S.optional(),
    c.READ_BEGAN_S.optional(),
    c.READ_CEASED_S.optional(),
    c.WRITE_BEGAN_S.optional(),
    c.WRITE_CEASED_S.optional(),
    c.CLOSED_S.optional(),
    c.READ_TIME_S.optional(),
    c.WRITE_TIME_S.optional(),
    c.METADATA_TIME_S.optional(),
)

TRACES = Table(
    name="traces",
    layer="landed",
    grain="one row per traced run",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.TRACER,
        c.TRACER_VERSION.optional(),
        c.JOB_ID.optional(),
        c.USER.optional(),
        c.UID.optional(),
        c.APPLICATION.optional(),
        c.COMMAND.optional(),
        c.PROCESS_COUNT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        c.DURATION_S.optional(),
        c.TIME_RESOLUTION_S.optional(),
        c.SOURCE_FILE,
    ),
    is_published=False,
)

TRACE_MODULES = Table(
    name="trace_modules",
    layer="landed",
    grain="one row per traced run and module, with what befell its reading",
    key=("trace_id", "module"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.MODULE,
        c.MODULE_VERSION.optional(),
        c.MODULE_OUTCOME,
        c.REASON.optional(),
        c.IS_PARTIAL,
        c.RECORD_COUNT.optional(),
        c.COUNTERS.optional(),
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
        c.PATH.optional(),
        c.MOUNT.optional(),
        c.FILESYSTEM_KIND.optional(),
        c.STRIPE_BYTES.optional(),
        c.OSTS.optional(),
    ),
    is_published=False,
)

TRACE_RECORDS = Table(
    name="trace_records",
    layer="landed",
    grain="one row per traced run, module, file and rank",
    key=("trace_id", "module", "file_number", "rank"),
    columns=(c.ENDED_ON.optional(), c.TRACE_ID, c.MODULE, c.FILE_NUMBER, c.RANK, *_COUNTS),
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
        c.BIN_BYTES,
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
        c.REQUEST,
        c.MODULE,
        c.RANK,
        c.HOST.optional(),
        c.FILE_NUMBER.optional(),
        c.DIRECTION,
        c.OFFSET_BYTES.optional(),
        c.REQUEST_BYTES.optional(),
        c.BEGAN_S,
        c.CEASED_S,
        c.IS_NESTED,
        c.IS_ASYNC,
        c.OST.optional(),
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
        c.CALL,
        c.LEVEL,
        c.MODULE,
        c.FUNCTION,
        c.ARGUMENTS,
        c.BEGAN_S,
        c.CEASED_S,
    ),
    is_published=False,
)

# ---- stage: traced runs, joined with the job log

TRACE_JOBS = Table(
    name="trace_jobs",
    layer="stage",
    grain="one row per traced run, with the job to which it belongs",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.TRACER,
        c.TRACER_VERSION.optional(),
        c.SOURCE_FILE,
        c.JOB_MATCH,
        c.CLUSTER.optional(),
        c.JOB_ID.optional(),
        c.JOB_STARTED_AT.optional(),
        c.TRACED_JOB_ID.optional(),
        c.USER.optional(),
        c.APPLICATION.optional(),
        c.COMMAND.optional(),
        c.PROCESS_COUNT.optional(),
        c.NODE_COUNT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        c.DURATION_S.optional(),
        c.TIME_RESOLUTION_S.optional(),
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
        c.MODULE_OUTCOME,
        c.REASON.optional(),
        c.IS_PARTIAL,
        c.COVERED_RATIO.optional(),
        c.IS_COUNTED,
        c.RECORD_COUNT.optional(),
        c.FILE_COUNT.optional(),
        *_COUNTS,
        c.COUNTERS.optional(),
    ),
    partition="ended_on",
)

# ---- samples: what a traced run did, as it told itself

CLIENT_IO = Table(
    name="client_io",
    layer="samples",
    grain="one row per traced run, file system and direction",
    key=("trace_id", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT.optional(),
        c.FILESYSTEM.optional(),
        c.DIRECTION,
        c.TRACE_ID,
        c.VOLUME_BYTES.optional(),
        c.MEAN_BYTES_PER_S.optional(),
        c.PEAK_BYTES_PER_S.optional(),
    ),
    is_published=False,
)

TRACE_SIGNALS = Table(
    name="trace_signals",
    layer="samples",
    grain="one row per traced run, module, direction and way of waiting",
    key=("trace_id", "module", "direction", "is_async"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.MODULE,
        c.DIRECTION,
        c.IS_ASYNC,
        c.BASIS,
        c.IS_COUNTED,
        c.COVERED_RATIO.optional(),
        c.VOLUME_BYTES,
        c.PEAK_BYTES_PER_S,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.SIGNAL_BYTES_PER_S,
    ),
    partition="ended_on",
)
