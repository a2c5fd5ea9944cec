"""Quality: what was refused, what was checked, and what was taken out."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

REJECTS = Table(
    name="rejects",
    layer="landed",
    grain="one row per refused input row, or per file that cannot be read at all",
    key=("landing_id", "source_file", "line", "reason"),
    columns=(
        Column("landing_id", "text", "The landing: the first 16 hex digits of the content's SHA-256."),
        c.SOURCE_FILE,
        c.LINE.optional(),
        c.REASON,
        Column("remedy", "text", "What to do about it.", hides="said"),
        Column("raw", "text", "The input as it was, cut at 2,000 characters.", nullable=True, hides="raw"),
    ),
)

_EXPECTATION = Column("expectation", "text", "The expectation, by its name in the table's suite.")
_SEVERITY = Column(
    "severity",
    "text",
    "What a failure means: critical stops the release, warning marks it.",
    choices=("critical", "warning", "info"),
)
_SUCCESS = Column("success", "bool", "Whether the expectation holds.")
_OBSERVED = Column(
    "observed",
    "text",
    "What was observed, as JSON: on the day, or over all days of the release with the latest failing_days.",
)
_UNEXPECTED_COUNT = Column("unexpected_count", "int", "Rows that break the expectation.", unit="rows")

QUALITY = Table(
    name="quality",
    layer="quality",
    grain="one row per table and expectation of the release's checks",
    key=("table_name", "expectation"),
    columns=(
        c.TABLE_NAME,
        _EXPECTATION,
        _SEVERITY,
        _SUCCESS,
        _OBSERVED,
        _UNEXPECTED_COUNT,
    ),
)

QUALITY_DAILY = Table(
    name="quality_daily",
    layer="quality",
    grain="one row per table, day with rows of it, and expectation: what the day's check found when it was made",
    key=("day", "table_name", "expectation"),
    columns=(
        c.DAY.optional(),
        c.TABLE_NAME,
        _EXPECTATION,
        _SEVERITY,
        _SUCCESS,
        _OBSERVED,
        _UNEXPECTED_COUNT,
        Column(
            "row_count",
            "int",
            "Rows of the day that were held to the expectation; of a share, those that count.",
            unit="rows",
        ),
    ),
    partition="day",
)

QUARANTINE = Table(
    name="quarantine",
    layer="quality",
    grain="one row per row that broke a rule and was taken out, and rule",
    key=("table_name", "rule", "row_json"),
    columns=(c.DAY.optional(), c.TABLE_NAME, c.RULE, c.ROW_JSON),
    partition="day",
)

#: until the quarantine of all tables is gathered
FAULTY_JOBS = replace(
    QUARANTINE,
    name="faulty_jobs",
    grain="one row per run that broke a rule and was taken out, and rule",
    is_published=False,
)
