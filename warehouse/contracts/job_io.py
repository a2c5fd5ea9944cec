"""Tables with the bytes of each run: one value per source of measurement, and the best estimate with its range."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.counters import OPERATIONS
from iosig.warehouse.contracts.types import Column, Table

_CONCURRENT_JOB_COUNT = Column(
    "concurrent_job_count",
    "int",
    "Number of other application runs on the same file system that overlap in time, known when the row was computed.",
)
_SOURCE_OUTCOME = Column(
    "outcome",
    "text",
    (
        "Whether the run was measured, or the reason why not: no polls of the job's file system, a trace without the "
        "size of every request, missing counts of servers (incomplete: the volume is a lower bound), or a simultaneous "
        "run of the same job or of the same id on another cluster (several_runs: bytes of both may be mixed)."
    ),
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
_FILESYSTEM_BYTES = Column(
    "filesystem_bytes",
    "real",
    "Bytes of all jobs that the file system moved during the run (shared traffic), as its polls show them. NULL "
    "without polls.",
    nullable=True,
)
_OWN_BYTES = Column(
    "own_bytes",
    "real",
    "Bytes that the run's own counters or trace recorded. NULL where it has none.",
    nullable=True,
)
_MOVED = (c.VOLUME_BYTES.optional(), c.MEAN_BYTES_PER_S.optional(), c.PEAK_BYTES_PER_S.optional())

SERVER_IO = Table(
    name="server_io",
    layer="samples",
    grain="one row per application run, file system and direction, measured by the storage servers",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM.optional(),
        c.DIRECTION,
        _SOURCE_OUTCOME,
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
    grain="one row per application run, file system and direction with counters by job",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        _SOURCE_OUTCOME,
        *_MOVED,
        c.MISSING_RATIO.optional(),
        c.METADATA_OPERATION_COUNT.optional(),
    ),
    is_published=False,
)

JOB_IO_SOURCES = Table(
    name="job_io_sources",
    layer="samples",
    grain="one row per run, file system, direction and source of measurement: the inputs of `job_io`",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "source", "trace_id"),
    columns=(
        *_OF_A_RUN,
        c.SOURCE,
        c.TRACE_ID.optional(),
        _SOURCE_OUTCOME,
        _FILESYSTEM_BYTES,
        _OWN_BYTES,
        c.MEAN_BYTES_PER_S.optional(),
        c.PEAK_BYTES_PER_S.optional(),
        c.POLL_COUNT.optional(),
        c.MISSING_RATIO.optional(),
        _CONCURRENT_JOB_COUNT.optional(),
        c.METADATA_OPERATION_COUNT.optional(),
    ),
    partition="ended_on",
)

JOB_IO = Table(
    name="job_io",
    layer="transforms",
    grain="one row per run, file system and direction, with the best estimate of its bytes",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        *_OF_A_RUN,
        Column(
            "estimated_bytes",
            "real",
            "Best estimate of the bytes that the run moved: `own_bytes` where they are known, else the traffic that "
            "attribution assigns to the run. NULL where there is no estimate. Sums over runs count no byte twice.",
            nullable=True,
        ),
        Column(
            "estimated_low_bytes",
            "real",
            "Lower end of the estimate's range: the estimate itself where it was counted or traced; of attributed "
            "bytes, the sum of the low ends of `attributed_io`. NULL where it is unknown (`several_runs`).",
            nullable=True,
        ),
        Column(
            "estimated_high_bytes",
            "real",
            "Upper end of the estimate's range, likewise. NULL where it is unknown (`incomplete`, `several_runs`).",
            nullable=True,
        ),
        Column(
            "estimate_source",
            "text",
            "Where the estimate comes from: counters that servers keep by job (counted), the program's own trace "
            "(traced), shared traffic explained by the application's signature (attributed), or no estimate (none).",
            choices=("counted", "traced", "attributed", "none"),
        ),
        Column(
            "outcome",
            "text",
            "Quality of the estimate. measured: counted or traced in full. incomplete: servers may have counted more, "
            "so that the estimate is a lower bound. several_runs: the counters may mix runs of one job id. attributed: "
            "estimated from shared traffic. Without an estimate, the reason: polls exist, but attribution assigns no "
            "traffic to the run (not_attributed), the trace does not record the size of every request "
            "(unknown_sizes), the trace has the run's bytes in another row: of another file system, of none, or of "
            "direction unstated (in_other_row), or the file system was not polled (no_polls).",
            choices=(
                "measured",
                "incomplete",
                "several_runs",
                "attributed",
                "not_attributed",
                "unknown_sizes",
                "in_other_row",
                "no_polls",
            ),
        ),
        _OWN_BYTES,
        _FILESYSTEM_BYTES,
        Column(
            "is_above_filesystem",
            "bool",
            "Whether `own_bytes` exceed `filesystem_bytes`: a page cache or burst buffer absorbed some of them, or "
            "polls are missing. NULL where either is unknown.",
            nullable=True,
        ),
        Column(
            "own_peak_bytes_per_s",
            "real",
            "Highest rate of the run's own bytes in any step of its series. NULL where it has none.",
            unit="B/s",
            nullable=True,
        ),
        Column(
            "filesystem_peak_bytes_per_s",
            "real",
            "Highest rate of all traffic of the file system during the run. NULL without polls.",
            unit="B/s",
            nullable=True,
        ),
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
        Column("server_operation", "text", "The operation, as servers name it.", choices=OPERATIONS),
        _SOURCE_OUTCOME,
        c.METADATA_OPERATION_COUNT,
        c.MEAN_OPERATIONS_PER_S,
        c.PEAK_OPERATIONS_PER_S,
    ),
    partition="ended_on",
)
