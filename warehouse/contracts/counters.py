"""Tables of storage servers' counters per job, as collectors read them: bytes and operations since an entry began.

Landed rows are stored by the UTC day of `scraped_at`. A day must be computable from its own rows and the last values of
the day before. Therefore, even an unchanged entry has a row for its first reading in an input and on each UTC day.
"""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

#: operations other than reads and writes that servers count; other: quotas, layouts and the like
OPERATIONS = (
    "open",
    "close",
    "mknod",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "rename",
    "readdir",
    "getattr",
    "setattr",
    "getxattr",
    "setxattr",
    "statfs",
    "sync",
    "punch",
    "create",
    "destroy",
    "other",
)
COMPONENT = Column(
    "component",
    "text",
    "Component that counted: a target of data (ost) or metadata (mdt), a server of both, or a client.",
    choices=("ost", "mdt", "server", "client"),
)
JOB_KEY = Column(
    "job_key",
    "text",
    "Name of the job on the server, parsed by a pattern of the settings; NULL for totals of the target.",
    hides="id",
)
_IS_JOB_SCRAPE = Column("is_job_scrape", "bool", "Whether the reading is of the jobs' entries, or of the totals.")
_COLLECTOR = Column("collector", "text", "The collector, if several may read the same counters.", hides="node")
_OPERATION_COUNTS = tuple(
    Column(
        f"total_{operation}_count",
        "int",
        f"Operations `{operation}` since the counter's start.",
        unit="operations",
        nullable=True,
    )
    for operation in OPERATIONS
)

COUNTER_SAMPLES = Table(
    name="counter_samples",
    layer="landed",
    grain="one row per counter and time of an observed change or of the first observation on a UTC day",
    key=("filesystem", "component", "target", "job_key", "collector", "sampled_at"),
    columns=(
        Column("sampled_at", "instant", "Time of the values: the entry's last change, if it has one."),
        Column("scraped_at", "instant", "When the collector read the counters."),
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        JOB_KEY.optional(),
        _COLLECTOR.optional(),
        Column(
            "counter_started_at",
            "instant",
            "Start of counting, if the entry has it. A new entry starts at 0.",
            nullable=True,
        ),
        Column("total_read_bytes", "int", "Bytes read since the counter's start.", nullable=True),
        Column("total_written_bytes", "int", "Bytes written since the counter's start.", nullable=True),
        Column("total_read_count", "int", "Reads since the counter's start.", unit="operations", nullable=True),
        Column("total_write_count", "int", "Writes since the counter's start.", unit="operations", nullable=True),
        *_OPERATION_COUNTS,
    ),
    landed_by=("scraped_at",),
    is_published=False,
)

SCRAPES = Table(
    name="scrapes",
    layer="landed",
    grain="one row per target and time at which a collector read all of its jobs' entries, or its totals",
    key=("filesystem", "component", "target", "is_job_scrape", "collector", "scraped_at"),
    columns=(
        Column("scraped_at", "instant", "When the collector read the counters."),
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        _COLLECTOR.optional(),
        Column("entry_count", "int", "Entries of the target, including unchanged ones.", unit="entries"),
        _IS_JOB_SCRAPE,
    ),
    landed_by=("scraped_at",),
    is_published=False,
)

_COUNTED_ON = Column("scraped_on", "date", "The UTC day on which the counters were read.")
#: operations that traces count, too
_SHARED = {"open": c.OPEN_COUNT, "sync": c.SYNC_COUNT}
#: columns of increases, by counter name
RISEN = (
    c.READ_BYTES.optional(),
    c.WRITTEN_BYTES.optional(),
    c.READ_COUNT.optional(),
    c.WRITE_COUNT.optional(),
    *(
        _SHARED.get(
            operation,
            Column(f"{operation}_count", "int", f"Operations `{operation}` in the interval.", unit="operations"),
        ).optional()
        for operation in OPERATIONS
    ),
)
#: reasons why an interval's traffic is uncertain
RISE_FLAGS = ("first_seen", "restarted", "lost_scrapes", "unclear", "decrease")
_FLAG = Column(
    "flag",
    "text",
    (
        "Why the increase is uncertain. Without a value: the counter existed before its first reading (first_seen), or "
        "it decreased without a restart (decrease). With a lower bound as the value: it was reset while in use "
        "(restarted), scrapes were missing for longer than servers keep idle counters (lost_scrapes), or it may have "
        "been reset without a decrease (unclear). NULL: the increase is known."
    ),
    choices=RISE_FLAGS,
    nullable=True,
)

_KEY_COUNT = Column("job_key_count", "int", "Jobs, as servers name them, with any increase.", unit="jobs")
_UNKNOWN_RISE_COUNT = Column("unknown_delta_count", "int", "Intervals of counters with an unknown increase.")

COUNTER_LAST_VALUES = Table(
    name="counter_last_values",
    layer="stage",
    grain="one row per counter and UTC day on which it was read, with its last values of that day",
    key=("filesystem", "component", "target", "job_key", "scraped_on"),
    columns=(_COUNTED_ON, *(column for column in COUNTER_SAMPLES.columns if column.name != "collector")),
    partition="scraped_on",
)

COUNTER_DELTAS = Table(
    name="counter_deltas",
    layer="stage",
    grain="one row per counter and interval between two scrapes with an increase or an unknown one",
    key=("filesystem", "component", "target", "job_key", "interval_ended_at"),
    columns=(
        _COUNTED_ON,
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        JOB_KEY.optional(),
        c.INTERVAL_STARTED_AT.optional(),
        c.INTERVAL_ENDED_AT,
        *RISEN,
        _FLAG,
    ),
    partition="scraped_on",
)

COUNTER_GAPS = Table(
    name="counter_gaps",
    layer="stage",
    grain="one row per target and interval between two scrapes in which counts may be lost",
    key=("filesystem", "component", "target", "is_job_scrape", "interval_ended_at"),
    columns=(
        _COUNTED_ON,
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        _IS_JOB_SCRAPE,
        c.INTERVAL_STARTED_AT.optional(),
        c.INTERVAL_ENDED_AT,
        Column(
            "flag",
            "text",
            (
                "Reason: the target's counters were reset, or scrapes were missing for longer than servers keep idle "
                "entries."
            ),
            choices=("restarted", "lost_scrapes"),
        ),
    ),
    partition="scraped_on",
)

_READINGS = (
    Column("sample_count", "int", "Readings of counters that are used."),
    Column("redundant_sample_count", "int", "Readings by another collector than the one that is used."),
    Column("duplicate_sample_count", "int", "Readings that repeat another one."),
    Column("conflicting_sample_count", "int", "Readings that contradict another one; the first landed is used."),
)
TIMED_SCRAPES = Table(
    name="timed_scrapes",
    layer="stage",
    grain="one row per used scrape of a day, with the previous one of its target",
    key=("filesystem", "component", "target", "is_job_scrape", "scraped_at"),
    columns=(
        *SCRAPES.columns,
        Column("previous_at", "instant", "Previous reading of the target; NULL without one.", nullable=True),
    ),
    is_published=False,
)

COUNTER_TARGETS = Table(
    name="counter_targets",
    layer="stage",
    grain="one row per target with counters read on a day",
    key=("filesystem", "component", "target"),
    columns=(
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        *_READINGS,
        Column("is_silent", "bool", "Whether the target has entries, and all are zero all day."),
        Column("is_overcounted", "bool", "Whether the sum of its jobs exceeds the target's totals."),
        Column("has_reads", "bool", "Whether its totals include the bytes read."),
        Column("has_writes", "bool", "Whether its totals include the bytes written."),
    ),
    is_published=False,
)

COUNTERS_DAILY = Table(
    name="counters_daily",
    layer="stage",
    grain="one row per file system and UTC day with readings of jobs' entries",
    key=("filesystem", "scraped_on"),
    columns=(
        _COUNTED_ON,
        c.FILESYSTEM,
        c.INTERVAL_S,
        c.GRID_PHASE_S,
        Column("target_count", "int", "Targets with readings of jobs' entries."),
        Column("scrape_count", "int", "Scrapes of jobs' entries."),
        Column("expected_scrape_count", "int", "Expected scrapes, by the interval and the targets."),
        c.MISSING_RATIO,
        _KEY_COUNT,
        *_READINGS,
        _UNKNOWN_RISE_COUNT,
        Column("gap_count", "int", "Intervals of targets in which counts may be lost."),
        Column(
            "silent_target_count",
            "int",
            "Targets with entries that are zero all day: their server does not count.",
            unit="targets",
        ),
        Column(
            "overcounted_target_count",
            "int",
            "Targets whose totals are exceeded by the sum of their jobs.",
            unit="targets",
        ),
        c.READ_BYTES,
        c.WRITTEN_BYTES,
        c.COUNTED_FROM_AT,
        c.COUNTED_UNTIL_AT,
    ),
    partition="scraped_on",
)

_KEY_KIND = Column(
    "key_kind",
    "text",
    (
        "Kind of the server's name of the job: empty (blank), with a scheduler's job id (job), a program and its user "
        "(process), or matching no pattern of the settings (unknown)."
    ),
    choices=("blank", "job", "process", "unknown"),
)

JOB_KEYS = Table(
    name="job_keys",
    layer="stage",
    grain="one row per job as servers name it on a day, with the fields that the settings' patterns extract",
    key=("job_key",),
    columns=(JOB_KEY, _KEY_KIND, c.SCHEDULER_ID.optional()),
    is_published=False,
)

COUNTER_JOB_TOTALS = Table(
    name="counter_job_totals",
    layer="stage",
    grain="one row per file system, UTC day and job as its servers name it, with its totals",
    key=("filesystem", "job_key", "scraped_on"),
    columns=(
        _COUNTED_ON,
        c.FILESYSTEM,
        JOB_KEY,
        _KEY_KIND,
        c.SCHEDULER_ID.optional(),
        c.INTERVAL_STARTED_AT,
        c.INTERVAL_ENDED_AT,
        _UNKNOWN_RISE_COUNT,
        *RISEN,
    ),
    partition="scraped_on",
)

UNATTRIBUTED_COUNTER_IO = Table(
    name="unattributed_counter_io",
    layer="stage",
    grain="one row per file system, UTC day and kind of job keys without a known job",
    key=("filesystem", "scraped_on", "key_kind"),
    columns=(_COUNTED_ON, c.FILESYSTEM, _KEY_KIND, _KEY_COUNT, *RISEN),
    partition="scraped_on",
)
