"""Rows of the attribution's tables that satisfy all rules, and changes that violate given rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.expectations.landed_cases import HOUR, NOON

NO_PATTERN = {
    "outcome": "no_pattern",
    **dict.fromkeys(
        (
            "pattern_id",
            "application_id",
            "known_since_at",
            "first_occurrence_at",
            "last_occurrence_at",
            "occurrence_count",
            "occurrence_bytes",
            "occurrence_duration_s",
            "occurrence_burst_count",
            "occurrence_starts_s",
            "occurrence_durations_s",
            "occurrence_volumes_bytes",
            "covered_occurrence_count",
            "application_run_count",
            "covering_run_count",
        )
    ),
}
NO_INTERFERENCE = dict.fromkeys(
    (
        "interfering_bytes",
        "unattributed_bytes",
        "top_interferer_job_id",
        "top_interferer_started_at",
        "top_interferer_bytes",
    )
)
NOT_LOCATED = {
    "outcome": "not_found",
    **dict.fromkeys(("burst_started_at", "burst_ended_at", "start_delay_s", "delay_s", "delay_low_s", "delay_high_s")),
    **NO_INTERFERENCE,
}

#: a valid row of each table
GOOD: dict[str, dict[str, Any]] = {
    "attributed_io": {
        "started_at": NOON,
        "minute_at": NOON + timedelta(minutes=1),
        "attributed_bytes": 10.0,
        "attributed_low_bytes": 9.0,
        "attributed_high_bytes": 12.0,
        "estimate_source": "attributed",
    },
    "slowdowns": {
        "started_at": NOON,
        "outcome": "slowed",
        "burst_expected_at": NOON + HOUR,
        "burst_started_at": NOON + HOUR,
        "burst_ended_at": NOON + 2 * HOUR,
        "start_delay_s": 1.0,
        "delay_s": 10.0,
        "delay_low_s": 5.0,
        "delay_high_s": 15.0,
        "interfering_bytes": 5.0,
        "unattributed_bytes": 5.0,
        "top_interferer_job_id": "8",
        "top_interferer_started_at": NOON,
        "top_interferer_bytes": 4.0,
    },
    "unattributed_patterns": {
        "outcome": "attributed",
        "application_id": "ann/ior/8",
        "pattern_id": "p",
        "known_since_at": NOON,
        "first_occurrence_at": NOON,
        "last_occurrence_at": NOON + HOUR,
        "occurrence_count": 2,
        "occurrence_bytes": 5.0,
        "occurrence_duration_s": 60.0,
        "occurrence_burst_count": 1,
        "occurrence_starts_s": [0.0, 3600.0],
        "occurrence_durations_s": [60.0, 60.0],
        "occurrence_volumes_bytes": [5.0, 5.0],
        "covered_occurrence_count": 2,
        "application_run_count": 3,
        "covering_run_count": 2,
    },
}

#: changes to the good row, and the row rules that they violate
BROKEN: list[tuple[str, set[str], dict[str, Any]]] = [
    ("attributed_io", {"bytes_within_range"}, {"attributed_low_bytes": 10.1}),
    ("attributed_io", {"bytes_within_range"}, {"attributed_high_bytes": 9.9}),
    ("attributed_io", {"minute_after_start"}, {"minute_at": NOON}),
    ("attributed_io", {"known_bytes_have_no_range"}, {"estimate_source": "counted"}),
    (
        "attributed_io",
        set(),
        {"estimate_source": "traced", "attributed_low_bytes": 10.0, "attributed_high_bytes": 10.0},
    ),
    ("slowdowns", set(), NOT_LOCATED),
    ("slowdowns", {"located_has_times"}, {"start_delay_s": None}),
    ("slowdowns", {"located_has_times"}, NOT_LOCATED | {"delay_s": 1.0}),
    ("slowdowns", {"delay_within_range"}, {"delay_high_s": 9.0}),
    ("slowdowns", {"burst_is_in_order"}, {"burst_ended_at": NOON}),
    ("slowdowns", {"slowed_is_delayed"}, {"delay_low_s": 0.0}),
    ("slowdowns", set(), {"outcome": "not_slowed", "delay_low_s": -1.0, **NO_INTERFERENCE}),
    ("slowdowns", {"slowed_has_interference"}, {"unattributed_bytes": None}),
    ("slowdowns", {"slowed_has_interference"}, {"outcome": "not_slowed"}),
    ("slowdowns", {"interferer_is_complete"}, {"top_interferer_started_at": None}),
    ("slowdowns", {"interferer_within_interference"}, {"top_interferer_bytes": 7.0}),
    ("slowdowns", {"burst_expected_after_start"}, {"burst_expected_at": NOON - HOUR}),
    ("unattributed_patterns", set(), NO_PATTERN),
    ("unattributed_patterns", {"pattern_has_numbers"}, {"known_since_at": None}),
    ("unattributed_patterns", {"pattern_has_numbers"}, NO_PATTERN | {"occurrence_count": 2}),
    ("unattributed_patterns", {"attributed_has_application"}, {"application_id": None}),
    ("unattributed_patterns", {"occurrences_are_in_order"}, {"last_occurrence_at": NOON - HOUR}),
    (
        "unattributed_patterns",
        {"pattern_recurs"},
        {
            "occurrence_count": 1,
            "occurrence_starts_s": [0.0],
            "occurrence_durations_s": [60.0],
            "occurrence_volumes_bytes": [5.0],
            "covered_occurrence_count": 1,
        },
    ),
    ("unattributed_patterns", {"occurrences_are_listed"}, {"occurrence_volumes_bytes": [5.0]}),
    ("unattributed_patterns", {"covered_within_occurrences"}, {"covered_occurrence_count": 3}),
    ("unattributed_patterns", {"covering_within_runs"}, {"covering_run_count": 4}),
    ("unattributed_patterns", {"period_has_probability"}, {"period_s": 3600.0}),
    ("unattributed_patterns", {"patterns_have_applications"}, {"outcome": "unattributed"}),
]
