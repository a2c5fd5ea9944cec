"""Counters of storage servers that name the job, as collectors read them: bytes and operations since an entry began.

What lands lies by the UTC day of `scraped_at`. So that a day is known from its own rows and the last values of the day
before, an entry that does not change has a row nevertheless where it is read first in an input, or on a UTC day.
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
    "What counted: a target of data (ost) or of metadata (mdt), a server of both, or a client.",
    choices=("ost", "mdt", "server", "client"),
)
JOB_KEY = Column(
    "job_key",
    "text",
    "The job as the server names it, which a pattern of the settings reads; NULL: all that the target counted.",
    hides="id",
)
_IS_JOB_SCRAPE = Column("is_job_scrape", "bool", "Whether its jobs' entries are meant, or its totals.")
_COLLECTOR = Column("collector", "text", "Who read the counters, where several may read the same ones.", hides="node")
_OPERATION_COUNTS = tuple(
    Column(
        f"total_{operation}_count",
        "int",
        f"Operations `{operation}` since it counts.",
        unit="operations",
        nullable=True,
    )
    for operation in OPERATIONS
)

COUNTER_SAMPLES = Table(
    name="counter_samples",
    layer="landed",
    grain="one row per counter and time at which it was seen to have changed, or was seen first on a UTC day",
    key=("filesystem", "component", "target", "job_key", "collector", "sampled_at"),
    columns=(
        Column("sampled_at", "instant", "When the values held: the entry's own last change where it says so."),
        Column("scraped_at", "instant", "When the collector read them."),
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        JOB_KEY.optional(),
        _COLLECTOR.optional(),
        Column(
            "counter_started_at",
            "instant",
            "From when the values count, where the entry says so: they begin at 0 when it is made anew.",
            nullable=True,
        ),
        Column("total_read_bytes", "int", "Bytes read since it counts.", nullable=True),
        Column("total_written_bytes", "int", "Bytes written since it counts.", nullable=True),
        Column("total_read_count", "int", "Reads since it counts.", unit="operations", nullable=True),
        Column("total_write_count", "int", "Writes since it counts.", unit="operations", nullable=True),
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
        Column("scraped_at", "instant", "When the collector read them."),
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        _COLLECTOR.optional(),
        Column(
            "entry_count", "int", "Entries that the target had, those that had not changed among them.", unit="entries"
        ),
        _IS_JOB_SCRAPE,
    ),
    landed_by=("scraped_at",),
    is_published=False,
)

_COUNTED_ON = Column("scraped_on", "date", "The UTC day on which the counters were read.")
#: operations that traces contain, too
_SHARED = {"open": c.OPEN_COUNT, "sync": c.SYNC_COUNT}
#: delta columns, by the names of the counters
RISEN = (
    c.READ_BYTES.optional(),
    c.WRITTEN_BYTES.optional(),
    c.READ_COUNT.optional(),
    c.WRITE_COUNT.optional(),
    *(
        _SHARED.get(
            operation,
            Column(f"{operation}_count", "int", f"Operations `{operation}` in that time.", unit="operations"),
        ).optional()
        for operation in OPERATIONS
    ),
)
#: reasons why an interval's traffic is uncertain
RISE_FLAGS = ("first_seen", "restarted", "lost_scrapes", "unclear", "decrease")
_FLAG = Column(
    "flag",
    "text",
    "Why it is not known for sure what rose: the counter was there before it was read first, or fell though it says "
    "that it still counts (there is no value); it began anew while it was in use, scrapes were lost for longer than a "
    "counter that is not used stays, or it may have begun anew without falling (unclear), and the value is the least "
    "that it can be. NULL: it is known.",
    choices=RISE_FLAGS,
    nullable=True,
)

_KEY_COUNT = Column("job_key_count", "int", "Jobs, as servers name them, of which anything rose.", unit="jobs")
_UNKNOWN_RISE_COUNT = Column("unknown_delta_count", "int", "Intervals of counters of which it is not known what rose.")

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
    grain="one row per counter and interval between two scrapes in which it rose, or of which it is not known",
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
    grain="one row per target and interval between two scrapes in which counts may have got lost",
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
            "Why: the target's counters began anew, or scrapes were lost for longer than an entry that is not used "
            "stays.",
            choices=("restarted", "lost_scrapes"),
        ),
    ),
    partition="scraped_on",
)

_READINGS = (
    Column("sample_count", "int", "Readings of counters that were taken."),
    Column("redundant_sample_count", "int", "Readings by another collector than the one that was taken."),
    Column("duplicate_sample_count", "int", "Readings that repeat another one."),
    Column("conflicting_sample_count", "int", "Readings that contradict another one; the first landed counts."),
)
TIMED_SCRAPES = Table(
    name="timed_scrapes",
    layer="stage",
    grain="one row per scrape of a day that counts, with the one before of its target",
    key=("filesystem", "component", "target", "is_job_scrape", "scraped_at"),
    columns=(
        *SCRAPES.columns,
        Column("previous_at", "instant", "When the target was read before; NULL where it was not.", nullable=True),
    ),
    is_published=False,
)

COUNTER_TARGETS = Table(
    name="counter_targets",
    layer="stage",
    grain="one row per target of which counters were read on a day",
    key=("filesystem", "component", "target"),
    columns=(
        c.FILESYSTEM,
        COMPONENT,
        c.TARGET,
        *_READINGS,
        Column("is_silent", "bool", "Whether its entries, where it has any, are zero all day."),
        Column("is_overcounted", "bool", "Whether its jobs moved more together than the target itself says."),
        Column("has_reads", "bool", "Whether its totals tell the bytes read."),
        Column("has_writes", "bool", "Whether its totals tell the bytes written."),
    ),
    is_published=False,
)

COUNTERS_DAILY = Table(
    name="counters_daily",
    layer="stage",
    grain="one row per file system and UTC day on which entries of jobs were read",
    key=("filesystem", "scraped_on"),
    columns=(
        _COUNTED_ON,
        c.FILESYSTEM,
        c.INTERVAL_S,
        c.GRID_PHASE_S,
        Column("target_count", "int", "Targets of which entries of jobs were read."),
        Column("scrape_count", "int", "Scrapes of entries of jobs."),
        Column("expected_scrape_count", "int", "Scrapes that the interval and the targets make due."),
        c.MISSING_RATIO,
        _KEY_COUNT,
        *_READINGS,
        _UNKNOWN_RISE_COUNT,
        Column("gap_count", "int", "Intervals of targets in which counts may have got lost."),
        Column(
            "silent_target_count",
            "int",
            "Targets whose entries, where they have any, are zero all day: such a server counts nothing.",
            unit="targets",
        ),
        Column(
            "overcounted_target_count",
            "int",
            "Targets whose jobs moved more together than the target itself says.",
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
    "What the server's name of the job is: none (blank), one with an id of the scheduler's (job), a program and its "
    "user (process), or none of the settings' patterns (unknown).",
    choices=("blank", "job", "process", "unknown"),
)

JOB_KEYS = Table(
    name="job_keys",
    layer="stage",
    grain="one row per job as servers name it on a day, with what the settings' patterns read in the name",
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
