"""The columns of extrapolations."""

from warehouse.contracts.types import Column

TRACE_SET_ID = Column(
    "trace_set_id",
    "text",
    "The traces that were extrapolated from, and whether with nested calls: the first 16 hex digits of a SHA-256.",
)
TRACE_SET = Column("trace_set", "text", "The names of these traces, as a JSON list in the order of rank_counts.")
TRACE_IDS = Column("trace_ids", "text", "The trace_id of each of these traces, as a JSON list in the same order.")
RANK_COUNTS = Column(
    "rank_counts", "ints", "Processes (MPI ranks) of each of these traces, rising.", unit="processes", low=1
)
HAS_NESTED_CALLS = Column(
    "has_nested_calls", "bool", "Whether calls within calls, such as those of MPI-IO to POSIX, were extrapolated too."
)
EXTRAPOLATION_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a trace at that rank count, and if not, why: fewer rank counts than it takes "
    "(too_few_rank_counts), the traces differ in their calls (structures_differ), no model explains a field exactly "
    "(no_exact_model), or a model gives no whole number there (no_whole_number).",
    choices=("extrapolated", "too_few_rank_counts", "structures_differ", "no_exact_model", "no_whole_number"),
)
MODELS = Column(
    "models",
    "text",
    "What explains each field exactly at all rank counts of the set, as a JSON list of objects with field and "
    "formula, which is in n (ranks), rank and loop indices.",
)
REFUSED_FIELDS = Column(
    "refused_fields",
    "text",
    "What could not be extrapolated, as a JSON list of objects with outcome, field and reason; NULL when nothing.",
)
CLASS_COUNT = Column("class_count", "int", "Classes of ranks that make the same calls.", unit="classes", low=0)
CALL_COUNT = Column("call_count", "int", "Calls of all ranks together.", unit="calls", low=0)
