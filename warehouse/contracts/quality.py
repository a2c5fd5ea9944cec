"""Tables of data quality: refused rows, results of checks, and quarantined rows."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

REJECTS = Table(
    name="rejects",
    layer="landed",
    grain="one row per refused input row or unreadable file",
    key=("landing_id", "source_file", "line", "reason"),
    columns=(
        Column("landing_id", "text", "The landing: the first 16 hex digits of the content's SHA-256."),
        c.SOURCE_FILE,
        c.LINE.optional(),
        c.REASON,
        Column("remedy", "text", "The remedy.", hides="said"),
        Column("raw", "text", "The raw input, truncated to 2,000 characters.", nullable=True, hides="raw"),
    ),
)

_EXPECTATION = Column("expectation", "text", "Name of the check in the table's suite.")
_SEVERITY = Column(
    "severity",
    "text",
    "Effect of a failure: critical stops the release, warning marks it.",
    choices=("critical", "warning", "info"),
)
_SUCCESS = Column("success", "bool", "Whether the check passed.")
_OBSERVED = Column(
    "observed",
    "text",
    "Observed values as JSON: of the day, or of all days of the release, with the latest failing_days.",
)
_UNEXPECTED_COUNT = Column("unexpected_count", "int", "Rows that fail the check.", unit="rows")

QUALITY = Table(
    name="quality",
    layer="quality",
    grain="one row per table and check of the release",
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
    grain="one row per table, day with rows, and check: the result for the day when it was computed",
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
            "Checked rows of the day; for a share, its denominator.",
            unit="rows",
        ),
    ),
    partition="day",
)

QUARANTINE = Table(
    name="quarantine",
    layer="quality",
    grain="one row per quarantined row and broken rule",
    key=("table_name", "rule", "row_json"),
    columns=(c.DAY.optional(), c.TABLE_NAME, c.RULE, c.ROW_JSON),
    partition="day",
)

#: quarantined rows of one table, before those of all tables are combined
FAULTY_JOBS = replace(
    QUARANTINE,
    name="faulty_jobs",
    grain="one row per quarantined run and broken rule",
    is_published=False,
)
