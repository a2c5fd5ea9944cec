"""Rows of operations, and changes that violate the rules on metrics."""

from __future__ import annotations

from typing import Any

#: changes that turn a row of bytes into one of operations
OPERATIONS: dict[str, dict[str, Any]] = {
    "sample_sets": {"sample_bytes": None, "volume_operations": 5.0},
    "signatures": {
        "is_default": False,
        "volume_bytes": None,
        "peak_bytes_per_s": None,
        "volume_operations": 100.0,
        "peak_operations_per_s": 10.0,
    },
    "signature_points": {
        **dict.fromkeys(("bytes_per_s", "low_bytes_per_s", "high_bytes_per_s")),
        "operations_per_s": 5.0,
        "low_operations_per_s": 4.0,
        "high_operations_per_s": 6.0,
    },
    "signature_bursts": {"volume_bytes": None, "volume_operations": 5.0},
    "classes": {"section_bytes": None, "section_operations": [4.0, 1.0, 0.0, 0.0]},
    "periods": {
        "is_default": False,
        "candidate_amplitudes_bytes_per_s": None,
        "candidate_amplitudes_operations_per_s": [5.0, None],
    },
    "period_segments": {"segment_bytes": None, "segment_operations": 5.0},
}


def _get_operations(changes: dict[str, Any]) -> Any:
    return next(value for name, value in changes.items() if "operation" in name)


#: table, broken rules and changes of the good row
BROKEN: list[tuple[str, set[str], dict[str, Any]]] = [
    *((name, set[str](), {"metric": "operations"} | changes) for name, changes in OPERATIONS.items()),
    *(
        (table_name, {rule}, {"metric": "operations"} | OPERATIONS[table_name] | changes)
        for table_name, rule, changes in (
            ("sample_sets", "operations_are_present", {"volume_operations": None}),
            ("sample_sets", "operations_have_no_bytes", {"sample_bytes": 5.0}),
            ("signatures", "operations_have_numbers", {"volume_operations": None}),
            ("signatures", "operations_have_no_bytes", {"background_bytes_per_s": 1.0}),
            ("signatures", "default_is_of_bytes", {"is_default": True}),
            ("signature_points", "operations_are_in_band", {"low_operations_per_s": 5.5}),
            ("signature_points", "band_of_operations_has_two_edges", {"high_operations_per_s": None}),
            ("signature_points", "operations_are_present", {"operations_per_s": None}),
            ("signature_points", "operations_have_no_bytes", {"bytes_per_s": 5.0}),
            ("signature_bursts", "operations_are_present", {"volume_operations": None}),
            ("signature_bursts", "operations_have_no_bytes", {"volume_bytes": 5.0}),
            ("classes", "classified_has_operations", {"section_operations": None}),
            ("classes", "operations_have_no_bytes", {"volume_bytes": 5.0}),
            ("periods", "default_is_of_bytes", {"is_default": True}),
            ("periods", "operations_have_one_method", {"method": "dft"}),
            ("periods", "candidates_of_operations_have_cosines", {"candidate_phases_rad": [-1.0]}),
            ("periods", "operations_have_no_bytes", {"mean_bytes_per_s": 5.0}),
            ("period_segments", "operations_are_present", {"segment_operations": None}),
            ("period_segments", "operations_have_no_bytes", {"segment_bytes": 5.0}),
        )
    ),
    ("sample_sets", {"bytes_are_present"}, {"sample_bytes": None}),
    ("signature_points", {"bytes_are_present"}, {"bytes_per_s": None}),
    ("signature_bursts", {"bytes_are_present"}, {"volume_bytes": None}),
    ("period_segments", {"bytes_are_present"}, {"segment_bytes": None}),
    *(
        (name, {"bytes_have_no_operations"}, {next(key for key in changes if "operation" in key): value})
        for name, value, changes in ((name, _get_operations(changes), changes) for name, changes in OPERATIONS.items())
    ),
]
