"""Tables of jobs, as recorded in the scheduler's log and queue."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_ACCOUNT = Column("account", "text", "The account or project that pays for the job.", hides="name")
_PARTITION = Column("partition", "text", "The scheduler's partition or queue.")
_TASK_COUNT = Column("task_count", "int", "Tasks (MPI ranks) of the job.")
_STATE = Column(
    "state",
    "text",
    "Final state of the job, in Slurm's terms.",
    choices=(
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
    ),
)
_SUBMITTED_AT = Column("submitted_at", "instant", "When the job was submitted.")
_HAS_SHARED_NODES = Column(
    "has_shared_nodes",
    "bool",
    "Whether other jobs may use the job's nodes at the same time, as the job log or the settings state.",
    nullable=True,
)
_JOB_NAME = Column("job_name", "text", "The name of the job or step, as the log has it.", hides="job_name")
_COMMENT = Column("comment", "text", "The job's comment, as the log has it.", hides="comment")
_SEEN_AT = Column("observed_at", "instant", "When the scheduler's queue was queried.")
#: state of a running or waiting job, in addition to its identity
_QUEUED = (
    _SUBMITTED_AT.optional(),
    Column("eligible_at", "instant", "Earliest start requested by the user.", nullable=True),
    c.STARTED_AT.optional(),
    Column("expected_start_at", "instant", "Expected start of a waiting job, by the scheduler.", nullable=True),
    Column(
        "time_limit_s",
        "real",
        "Time limit of the job; NULL if unlimited or unknown.",
        nullable=True,
        low=0,
    ),
    Column(
        "queue_state",
        "text",
        "State of the job at the time of the query, in Slurm's terms.",
        choices=("PENDING", "REQUEUED", "CONFIGURING", "RUNNING", "RESIZING", "SUSPENDED", "COMPLETING"),
    ),
    Column("wait_reason", "text", "Why the job waits, in the scheduler's terms.", nullable=True, hides="reason"),
    Column(
        "run_count",
        "int",
        "Number of runs in the row: waiting tasks of an array; NULL if Slurm abridges their list.",
        nullable=True,
    ),
)

JOB_RECORDS = Table(
    name="job_records",
    layer="landed",
    grain="one row per record of a job log",
    key=("source_file", "line"),
    columns=(
        c.CLUSTER.optional(),
        c.JOB_ID,
        c.USER.optional(),
        _ACCOUNT.optional(),
        _JOB_NAME.optional(),
        _PARTITION.optional(),
        c.NODE_COUNT.optional(),
        _TASK_COUNT.optional(),
        _SUBMITTED_AT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        _STATE.optional(),
        Column(
            "cancelled_by",
            "text",
            "User id that cancelled the job, as in the log.",
            nullable=True,
            hides="name",
        ),
        Column("exit_code", "text", "The job's exit code, as the log writes it.", nullable=True, hides="id"),
        Column(
            "node_list",
            "text",
            "Nodes of the job, as written in the log; pseudonyms are separated by commas.",
            nullable=True,
            hides="nodes",
        ),
        _HAS_SHARED_NODES,
        _COMMENT.optional(),
        c.SOURCE_FILE,
        c.LINE,
    ),
    is_published=False,
)

QUEUE_RECORDS = Table(
    name="queue_records",
    layer="landed",
    grain="one row per running or waiting job in a response of the scheduler",
    key=("source_file", "line"),
    columns=(
        _SEEN_AT,
        c.CLUSTER.optional(),
        c.JOB_ID,
        c.USER.optional(),
        _ACCOUNT.optional(),
        _JOB_NAME.optional(),
        _PARTITION.optional(),
        c.NODE_COUNT.optional(),
        *_QUEUED,
        _COMMENT.optional(),
        c.SOURCE_FILE,
        c.LINE,
    ),
    landed_by=("observed_at",),
    is_published=False,
)

JOBS = Table(
    name="jobs",
    layer="stage",
    grain="one row per run of a job, array task or step",
    key=("cluster", "job_id", "started_at"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.MACHINE.optional(),
        c.JOB_ID,
        Column("parent_job_id", "text", "The id of the job to which a step belongs.", nullable=True),
        Column(
            "job_kind",
            "text",
            (
                "Kind of the record: an allocation, an array task, a numbered step, or a step of the scheduler (batch, "
                "extern, interactive)."
            ),
            choices=("allocation", "array_task", "step", "system_step"),
        ),
        Column(
            "is_application_run",
            "bool",
            "Whether this is the finest record of a run: a step, or a job without known numbered steps.",
        ),
        c.USER.optional(),
        _ACCOUNT.optional(),
        c.APPLICATION.optional(),
        c.APPLICATION_ID.optional(),
        _PARTITION.optional(),
        c.FILESYSTEM.optional(),
        c.NODE_COUNT.optional(),
        _TASK_COUNT.optional(),
        _HAS_SHARED_NODES,
        _SUBMITTED_AT.optional(),
        c.STARTED_AT.optional(),
        c.ENDED_AT.optional(),
        _STATE.optional(),
        c.DURATION_S.optional(),
        c.SOURCE_FILE,
        c.LINE,
    ),
    partition="ended_on",
)

QUEUED_JOBS = Table(
    name="queued_jobs",
    layer="stage",
    grain="one row per running or waiting job and time of a query to the scheduler",
    key=("cluster", "job_id", "observed_at"),
    columns=(
        Column("observed_on", "date", "The UTC day of the query to the scheduler."),
        _SEEN_AT,
        c.CLUSTER,
        c.MACHINE.optional(),
        c.JOB_ID,
        c.USER.optional(),
        _ACCOUNT.optional(),
        c.APPLICATION.optional(),
        c.APPLICATION_ID.optional(),
        _PARTITION.optional(),
        c.FILESYSTEM.optional(),
        c.NODE_COUNT.optional(),
        *_QUEUED,
    ),
    partition="observed_on",
)
