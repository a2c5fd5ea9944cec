"""The tables of extrapolations: which trace a set of traces gives at a rank count that nobody ran, or why none."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Table

_KEY = ("trace_set_id", "process_count")
_COLUMNS = (
    c.TRACE_SET_ID,
    c.TRACE_SET,
    c.TRACE_IDS,
    c.RANK_COUNTS,
    c.PROCESS_COUNT,
    c.HAS_NESTED_CALLS,
    c.EXTRAPOLATION_OUTCOME,
    c.MODELS,
    c.REFUSED_FIELDS.optional(),
    c.CLASS_COUNT.optional(),
    c.CALL_COUNT.optional(),
    c.READ_BYTES.optional(),
    c.WRITTEN_BYTES.optional(),
    c.FILE_COUNT.optional(),
    c.SOURCE_FILE,
)

EXTRAPOLATION_RECORDS = Table(
    name="extrapolation_records",
    layer="landed",
    grain="one row per record of an extrapolation",
    key=("source_file", *_KEY),
    columns=_COLUMNS,
    is_published=False,
)

EXTRAPOLATIONS = Table(
    name="extrapolations",
    layer="stage",
    grain="one row per set of traces and rank count that it was extrapolated to",
    key=_KEY,
    columns=_COLUMNS,
)
