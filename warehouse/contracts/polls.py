"""Tables of storage controllers' polls, and of their daily sums."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_POLLED_AT = Column("polled_at", "instant", "Right edge of the poll's interval.")
_CONTROLLER = Column("controller", "text", "The storage controller, server or target that was polled.")
_CONTROLLER_COUNT = Column("controller_count", "int", "Controllers that reported.")
_DUPLICATE_POLL_COUNT = Column(
    "duplicate_poll_count", "int", "Polls that repeat another one of the same controller and instant."
)
_CONFLICTING_POLL_COUNT = Column(
    "conflicting_poll_count",
    "int",
    "Polls that contradict another one of the same controller and instant; the first landed is used.",
)
_IOPS = (
    Column("read_iops", "real", "Read operations per second over the interval.", nullable=True),
    Column("write_iops", "real", "Write operations per second over the interval.", nullable=True),
)
#: operations of a tick; NULL if none of its polls counts them
_OPERATIONS = (c.READ_COUNT.optional(), c.WRITE_COUNT.optional())
#: numbers of polls with each kind of fault
_FAULT_COUNTS = (
    Column("gap_poll_count", "int", "Polls that are flagged as gaps."),
    _DUPLICATE_POLL_COUNT,
    _CONFLICTING_POLL_COUNT,
    Column("implausible_poll_count", "int", "Polls above the controller's maximum rate, excluded from sums."),
)

POLLS = Table(
    name="polls",
    layer="landed",
    grain="one row per poll of a controller",
    key=("filesystem", "controller", "polled_at"),
    columns=(
        _POLLED_AT,
        c.FILESYSTEM,
        _CONTROLLER,
        c.INTERVAL_S,
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        *_IOPS,
        c.FLAG.optional(),
    ),
    landed_by=("polled_at", "controller", "filesystem"),
    is_published=False,
)

REPEATED_POLLS = Table(
    name="repeated_polls",
    layer="stage",
    grain="one row per controller and instant with several landed polls, with the one that is used",
    key=("filesystem", "controller", "polled_at"),
    columns=(
        c.FILESYSTEM,
        _CONTROLLER,
        _POLLED_AT,
        c.INTERVAL_S,
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        *_IOPS,
        _DUPLICATE_POLL_COUNT,
        _CONFLICTING_POLL_COUNT,
    ),
    is_published=False,
)

FAULTY_POLLS = Table(
    name="faulty_polls",
    layer="stage",
    grain="one row per poll excluded from sums, and broken rule",
    key=("table_name", "rule", "row_json"),
    columns=(c.DAY.optional(), c.TABLE_NAME, c.RULE, c.ROW_JSON),
    is_published=False,
)

POLL_TICKS = Table(
    name="poll_ticks",
    layer="stage",
    grain="one row per file system, poll instant and interval, with counts of its polls by state",
    key=("filesystem", "polled_at", "interval_s"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        _POLLED_AT,
        c.INTERVAL_S,
        _CONTROLLER_COUNT,
        c.READ_BYTES.optional(),
        c.WRITTEN_BYTES.optional(),
        *_OPERATIONS,
        *_FAULT_COUNTS,
    ),
    is_published=False,
)

POLLS_DAILY = Table(
    name="polls_daily",
    layer="stage",
    grain="one row per file system and UTC day of polls",
    key=("filesystem", "polled_on"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        c.INTERVAL_S,
        c.GRID_PHASE_S,
        _CONTROLLER_COUNT,
        c.POLL_COUNT,
        Column(
            "expected_poll_count",
            "int",
            "Expected polls, by the interval and the controllers of the day, within the covered time.",
        ),
        c.MISSING_RATIO,
        Column(
            "is_partial_day",
            "bool",
            "Whether the data start or end within the day: the first day of the file system, or the last day of all.",
            nullable=True,
        ),
        *_FAULT_COUNTS,
        c.READ_BYTES.optional(),
        c.WRITTEN_BYTES.optional(),
        c.PEAK_BYTES_PER_S.optional(),
    ),
    partition="polled_on",
)

TICKS = Table(
    name="filesystem_rates",
    layer="stage",
    grain="one row per file system, poll instant and interval, summed over controllers",
    key=("filesystem", "polled_at", "interval_s"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        _POLLED_AT,
        c.INTERVAL_S,
        _CONTROLLER_COUNT,
        c.EXPECTED_CONTROLLER_COUNT,
        c.READ_BYTES.optional(),
        c.WRITTEN_BYTES.optional(),
        *_OPERATIONS,
    ),
    partition="polled_on",
)

POLLED_TRAFFIC = Table(
    name="polled_traffic",
    layer="transforms",
    grain="one row per file system, direction and poll instant",
    key=("filesystem", "direction", "polled_at"),
    columns=(
        c.FILESYSTEM,
        c.DIRECTION,
        _POLLED_AT,
        c.INTERVAL_S,
        Column("moved_bytes", "int", "Bytes of the poll's interval; NULL if none of its polls has them.").optional(),
    ),
    is_published=False,
)

#: polls derived from totals of targets, in addition to landed ones
COUNTER_POLLS = replace(POLLS, name="counter_polls", layer="stage")
