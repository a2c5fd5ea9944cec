"""Counters of storage servers that name the job, as collectors read them: bytes and operations since an entry began.

What lands lies by the UTC day of `scraped_at`. So that a day is known from its own rows and the last values of the day
before, an entry that does not change has a row nevertheless where it is read first in an input, or on a UTC day.
"""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Column, Table

#: what servers count beside reads and writes; other: what has no name of its own here (quotas, layouts and the like)
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
TARGET = Column("target", "text", "The target, server or client whose counter it is.")
JOB_KEY = Column(
    "job_key",
    "text",
    "The job as the server names it, which a pattern of the settings reads; NULL: all that the target counted.",
    hides="id",
)
_COLLECTOR = Column("collector", "text", "Who read the counters, where several may read the same ones.")
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
        TARGET,
        JOB_KEY.optional(),
        _COLLECTOR.optional(),
        Column(
            "counted_since_at",
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
        TARGET,
        _COLLECTOR.optional(),
        Column(
            "entry_count", "int", "Entries that the target had, those that had not changed among them.", unit="entries"
        ),
        Column("is_job_scrape", "bool", "Whether its jobs' entries were read, or its totals."),
    ),
    landed_by=("scraped_at",),
    is_published=False,
)
