"""What each run moved, as the servers saw it and as it told itself."""

from warehouse.contracts import columns as c
from warehouse.contracts.counters import OPERATIONS
from warehouse.contracts.types import Column, Table

_CONCURRENT_JOB_COUNT = Column(
    "concurrent_job_count",
    "int",
    "Other application runs on the same file system that overlap in time, of those known when the row was made.",
)
_JOB_IO_OUTCOME = Column(
    "outcome",
    "text",
    "Whether it was measured, and if not, why: no polls of the job's file system were there, the trace does not tell "
    "the size of every request, servers may have counted more than is known (incomplete: the volume is the least), or "
    "another run of the same job, or one of its id on another machine, was there at the same time (several_runs: it "
    "may hold bytes of that one, or lack some).",
    choices=("measured", "no_polls", "unknown_sizes", "incomplete", "several_runs"),
)
_OF_A_RUN = (
    c.ENDED_ON.optional(),
    c.CLUSTER,
    c.JOB_ID,
    c.STARTED_AT.optional(),
    c.FILESYSTEM.optional(),
    c.DIRECTION,
)
_MOVED = (c.VOLUME_BYTES.optional(), c.MEAN_BYTES_PER_S.optional(), c.PEAK_BYTES_PER_S.optional())

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
        _JOB_IO_OUTCOME,
        *_MOVED,
        c.POLL_COUNT,
        c.MISSING_RATIO.optional(),
        _CONCURRENT_JOB_COUNT,
    ),
    is_published=False,
)

CLIENT_IO = Table(
    name="client_io",
    layer="samples",
    grain="one row per traced run, file system and direction",
    key=("trace_id", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.TRACE_ID,
        *_MOVED,
    ),
    is_published=False,
)

EXACT_IO = Table(
    name="exact_io",
    layer="samples",
    grain="one row per application run, file system and direction of which servers counted by job",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        _JOB_IO_OUTCOME,
        *_MOVED,
        c.MISSING_RATIO.optional(),
        c.METADATA_OPERATION_COUNT.optional(),
    ),
    is_published=False,
)

JOB_IO = Table(
    name="job_io",
    layer="samples",
    grain="one row per application run or traced run, file system and direction",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "source", "trace_id"),
    columns=(
        *_OF_A_RUN,
        c.SOURCE,
        c.TRACE_ID.optional(),
        _JOB_IO_OUTCOME,
        *_MOVED,
        c.POLL_COUNT.optional(),
        c.MISSING_RATIO.optional(),
        _CONCURRENT_JOB_COUNT.optional(),
        c.METADATA_OPERATION_COUNT.optional(),
    ),
    partition="ended_on",
)

METADATA_IO = Table(
    name="metadata_io",
    layer="samples",
    grain="one row per application run, file system, target and metadata operation that servers counted",
    key=("cluster", "job_id", "started_at", "filesystem", "target", "server_operation"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.TARGET,
        Column("server_operation", "text", "What was done, as servers name it.", choices=OPERATIONS),
        _JOB_IO_OUTCOME,
        c.METADATA_OPERATION_COUNT,
        Column("mean_operations_per_s", "real", "The count over the run's steps."),
        Column("peak_operations_per_s", "real", "The highest rate between two scrapes."),
    ),
    partition="ended_on",
)

BEST_JOB_IO = Table(
    name="best_job_io",
    layer="samples",
    grain="one row per application run, file system and direction, from the source that knows best",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        c.SOURCE,
        c.IS_SHARED_TRAFFIC,
        _JOB_IO_OUTCOME,
        *_MOVED,
        Column(
            "own_bytes",
            "real",
            "Bytes that the run itself moved; NULL where only the traffic of all is known, so that no sum counts "
            "bytes twice.",
            nullable=True,
        ),
    ),
    partition="ended_on",
)
