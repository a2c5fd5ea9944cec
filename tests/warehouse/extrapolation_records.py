"""Build records of extrapolations: an extrapolated trace and a refused trace."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from iosig.warehouse.sources.extrapolations.record import FieldModel, GivenTrace, Record, RefusedField, Totals


def sha256(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def traces(*process_counts: int, program: str = "ior") -> tuple[GivenTrace, ...]:
    names = ((count, f"{program}/{count}/raw") for count in process_counts)
    return tuple(GivenTrace(count, sha256(name), name) for count, name in names)


TOTALS = Totals(class_count=2, call_count=5000, read_bytes=0, written_bytes=1 << 40, file_count=1)
EXTRAPOLATED = Record(
    traces=traces(8, 12, 16, 24),
    has_nested_calls=False,
    process_count=1000,
    outcome="extrapolated",
    models=(FieldModel("class 0, call 4 pwrite, argument 4", "rank * (960 / n)"),),
    refused_fields=(),
    totals=TOTALS,
)
REFUSED = replace(
    EXTRAPOLATED,
    process_count=28,
    outcome="no_whole_number",
    refused_fields=(
        RefusedField("no_whole_number", "class 0, call 4 pwrite, argument 4", "960 / 28 is not an integer."),
        RefusedField("no_exact_model", "class 0, call 5 pread, argument 4", "No model explains 3 of 24 values."),
    ),
    totals=Totals(),
)
