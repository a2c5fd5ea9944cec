"""Tables of extrapolations: the trace predicted from a set of traces for another rank count, or why it is missing."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_KEY = ("trace_set_id", "process_count")
_COLUMNS = (
    Column(
        "trace_set_id",
        "text",
        "Id of the set of source traces, with or without nested calls: the first 16 hex digits of a SHA-256.",
    ),
    Column(
        "trace_set", "text", "The names of these traces, as a JSON list in the order of rank_counts.", hides="listed"
    ),
    Column("trace_ids", "text", "The trace_id of each of these traces, as a JSON list in the same order."),
    Column("rank_counts", "ints", "Processes (MPI ranks) of each of these traces, rising.", unit="processes", low=1),
    c.PROCESS_COUNT,
    Column(
        "has_nested_calls",
        "bool",
        "Whether calls within calls, such as those of MPI-IO to POSIX, were extrapolated too.",
    ),
    Column(
        "outcome",
        "text",
        (
            "Whether the trace was extrapolated, or the reason why not: too few rank counts (too_few_rank_counts), "
            "traces with different calls (structures_differ), a field that no model explains exactly (no_exact_model), "
            "or a model without an integer value at that rank count (no_whole_number)."
        ),
        choices=("extrapolated", "too_few_rank_counts", "structures_differ", "no_exact_model", "no_whole_number"),
    ),
    Column(
        "models",
        "text",
        (
            "Exact formula of each field at all rank counts of the set, as a JSON list of objects with field and "
            "formula in terms of n (ranks), rank and loop indices."
        ),
        hides="said",
    ),
    Column(
        "refused_fields",
        "text",
        (
            "Fields that could not be extrapolated, as a JSON list of objects with outcome, field and reason; NULL "
            "without any."
        ),
        nullable=True,
        hides="said",
    ),
    Column("class_count", "int", "Classes of ranks that make the same calls.", nullable=True),
    Column("call_count", "int", "Calls of all ranks together.", nullable=True),
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
