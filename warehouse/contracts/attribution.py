"""Attribution: whose bytes a file system's traffic was, by the signatures of the runs that were there."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Column, Table

_EXPLAINED_BYTES = Column("explained_bytes", "real", "Bytes that the signatures of runs explain.")
_CERTAINTY = Column(
    "certainty",
    "real",
    "How sure that is: the signature's trust, less where its bursts fit badly; of a day, in the mean of the bytes.",
    unit="1",
    low=0,
    high=1,
)
_RANGE = "a range that holds the run's bytes of a quarter of an hour or more four times of five."

ATTRIBUTED_IO = Table(
    name="attributed_io",
    layer="transforms",
    grain="one row per application run, file system, direction and minute in which its signature explains traffic",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "minute_at"),
    columns=(
        c.ENDED_ON,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.APPLICATION_ID,
        c.FILESYSTEM,
        c.DIRECTION,
        Column("minute_at", "instant", "The right edge of the minute."),
        _EXPLAINED_BYTES,
        Column("low_bytes", "real", f"The lower end of {_RANGE}"),
        Column("high_bytes", "real", f"The upper end of {_RANGE}"),
        _CERTAINTY,
    ),
    partition="ended_on",
)

EXPLAINED_DAYS = Table(
    name="explained_days",
    layer="transforms",
    grain="one row per file system, UTC day and direction that was polled",
    key=("filesystem", "polled_on", "direction"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        c.DIRECTION,
        Column("measured_bytes", "real", "Bytes that the polls hold."),
        _EXPLAINED_BYTES,
        Column("unexplained_bytes", "real", "Bytes that no signature explains."),
        Column("over_explained_bytes", "real", "Bytes that were explained beyond what a minute's polls hold."),
        _CERTAINTY.optional(),
    ),
    partition="polled_on",
)
