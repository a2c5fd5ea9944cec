"""Rows that break no rule of their table, and what makes them break which."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

DAY = date(2018, 2, 9)
NOON = datetime(2018, 2, 9, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

NO_POLLS = {"outcome": "no_polls", "poll_count": 0, "missing_ratio": None}
NO_VALUES = {"volume_bytes": None, "mean_bytes_per_s": None, "peak_bytes_per_s": None}
NOT_READ = {"outcome": "unreadable", "reason": "Damaged.", "is_counted": False, "read_bytes": None}


def of_year(year: int) -> dict[str, Any]:
    """When the good job was submitted, started and ended, in another year."""
    moved = {name: GOOD["jobs"][name].replace(year=year) for name in ("submitted_at", "started_at", "ended_at")}
    return moved | {"ended_on": DAY.replace(year=year)}


#: a row of each table that breaks no rule; what is not said here is filled by `row_of`
GOOD: dict[str, dict[str, Any]] = {
    "rejects": {"reason": "It is no number.", "remedy": "Mend it."},
    "jobs": {
        "ended_on": DAY,
        "submitted_at": NOON - HOUR,
        "started_at": NOON,
        "ended_at": NOON + HOUR,
        "duration_s": 3600.0,
        "node_count": 4,
        "state": "COMPLETED",
    },
    "series_intervals": {"bytes_per_s": 5.0},
    "poll_days": {
        "polled_on": DAY,
        "controller_count": 2,
        "poll_count": 95,
        "expected_poll_count": 100,
        "missing_ratio": 0.05,
        "duplicate_poll_count": 0,
        "conflicting_poll_count": 0,
        "implausible_poll_count": 0,
        "read_bytes": 10,
        "written_bytes": 0,
        "peak_bytes_per_s": 5.0,
    },
    "ticks": {"polled_on": DAY, "polled_at": NOON, "controller_count": 2, "expected_controller_count": 2},
    "job_io": {
        "outcome": "measured",
        "volume_bytes": 10.0,
        "mean_bytes_per_s": 1.0,
        "peak_bytes_per_s": 1.0,
        "poll_count": 10,
        "missing_ratio": 0.0,
        "source": "server",
    },
    "trace_jobs": {
        "ended_on": DAY,
        "started_at": NOON,
        "ended_at": NOON + HOUR,
        "job_match": "job_id",
        "job_id": "7",
        "cluster": "edison",
    },
    "trace_counters": {
        "module": "POSIX",
        "outcome": "sound",
        "is_partial": False,
        "is_counted": True,
        "read_bytes": 5,
        "read_began_s": 1.0,
        "read_ceased_s": 2.0,
    },
    "trace_heatmaps": {"step_count": 3, "bin_bytes": [1, 0, 2]},
    "trace_signals": {
        "basis": "requests",
        "step_count": 2,
        "signal_bytes_per_s": [0.0, 5.0],
        "volume_bytes": 5.0,
        "peak_bytes_per_s": 5.0,
    },
    "samples": {
        "started_at": NOON,
        "grid_started_at": NOON - timedelta(seconds=1),
        "interval_s": 2.0,
        "step_count": 3,
        "sample_bytes_per_s": [1.0, None, 2.0],
        "reported_ratios": [1.0, 0.0, 1.0],
    },
    "applications": {"sample_count": 1, "first_at": NOON, "last_at": NOON + HOUR},
    "classes": {
        "subject_kind": "job",
        "started_at": NOON,
        "outcome": "classified",
        "label": "START",
        "section_bytes": [4.0, 1.0, 0.0, 0.0],
        "source": "server",
        "is_shared_traffic": True,
    },
    "periods": {
        "subject_kind": "job",
        "started_at": NOON,
        "source": "server",
        "is_shared_traffic": True,
        "method": "controlled",
        "is_default": True,
        "outcome": "periodic",
        "window_start_s": 0.0,
        "window_end_s": 600.0,
        "frequency_hz": 0.05,
        "period_s": 20.0,
        "candidates": [0.05, 0.01],
        "candidate_amplitudes_bytes_per_s": [5.0, None],
        "candidate_phases_rad": [-1.0, None],
        "sigma_vol": 0.25,
        "sigma_time": 0.125,
        "periodicity_score": 0.625,
        "false_alarm_probability": 0.001,
    },
}

#: what any row of a table breaks: a note, no fault of the row
NOTED = {"rejects": {"nothing_refused"}}
#: what a table without rows breaks, where nothing is configured
EMPTY = {
    "jobs": {"has_rows", "nodes_within_machine"},
    "poll_days": {"has_rows", "all_controllers_reported"},
    "ticks": {"has_rows"},
    "job_io": {"some_runs_measured"},
}
SETTINGS = {"machine_node_count": 10, "min_controller_count": 2}

#: what makes the good row break which rules about rows, and none but these
BROKEN: list[tuple[str, set[str], dict[str, Any]]] = [
    ("rejects", {"reason_given"}, {"reason": ""}),
    ("rejects", {"remedy_given"}, {"remedy": ""}),
    ("rejects", {"raw_is_cut"}, {"raw": "x" * 2001}),
    ("jobs", {"ends_after_start", "duration_matches_times"}, {"ended_at": NOON - HOUR, "duration_s": None}),
    ("jobs", {"nodes_within_machine"}, {"node_count": 11}),
    ("jobs", {"submitted_before_start"}, {"submitted_at": NOON + timedelta(seconds=1)}),
    (
        "jobs",
        {"duration_plausible"},
        {"ended_at": NOON + 61 * 24 * HOUR, "duration_s": 61 * 86400.0, "ended_on": DAY + timedelta(61)},
    ),
    ("jobs", {"duration_matches_times"}, {"duration_s": 3601.0}),
    ("jobs", {"duration_matches_times"}, {"duration_s": None}),
    ("jobs", {"queue_wait_plausible"}, {"submitted_at": NOON - 367 * 24 * HOUR}),
    ("jobs", {"finished_runs_have_ends"}, {"ended_at": None, "ended_on": None, "duration_s": None}),
    ("jobs", {"ended_on_is_end_day"}, {"ended_on": DAY + timedelta(1)}),
    ("jobs", {"ended_on_is_end_day"}, {"ended_on": None}),
    ("series_intervals", {"flagged_gap_has_no_value"}, {"flag": "reset"}),
    ("series_intervals", {"most_intervals_measured"}, {"bytes_per_s": None, "flag": "missing"}),
    ("poll_days", {"enough_polls"}, {"missing_ratio": 0.11}),
    ("poll_days", {"has_polls"}, {"poll_count": 0}),
    ("poll_days", {"all_controllers_reported"}, {"controller_count": 1}),
    ("poll_days", {"no_implausible_polls"}, {"implausible_poll_count": 1}),
    ("poll_days", {"no_conflicting_polls"}, {"conflicting_poll_count": 1}),
    ("poll_days", {"no_duplicate_polls"}, {"duplicate_poll_count": 1}),
    ("poll_days", {"no_more_polls_than_due"}, {"poll_count": 101}),
    ("poll_days", {"peak_where_bytes"}, {"peak_bytes_per_s": 0.0}),
    ("poll_days", {"peak_where_bytes"}, {"peak_bytes_per_s": None}),
    ("ticks", {"controllers_mostly_complete"}, {"controller_count": 1}),
    ("ticks", {"polled_on_is_poll_day"}, {"polled_on": DAY - timedelta(1)}),
    ("job_io", {"peak_at_least_mean"}, {"mean_bytes_per_s": 1.00001}),
    ("job_io", {"volume_agrees_with_rates"}, {"volume_bytes": 0.0}),
    ("job_io", {"volume_agrees_with_rates"}, {"mean_bytes_per_s": 0.0}),
    ("job_io", {"measured_has_polls"}, {"poll_count": 0}),
    ("job_io", {"few_gaps"}, {"missing_ratio": 0.51}),
    ("job_io", {"measured_has_polls"}, {"poll_count": None}),
    ("job_io", {"traced_has_trace"}, {"trace_id": "t"}),
    ("job_io", {"traced_has_trace"}, {"source": "client"}),
    ("job_io", {"traced_has_volume"}, {"source": "client", "trace_id": "t", "volume_bytes": None}),
    ("job_io", set(), {"source": "client", "trace_id": "t", "poll_count": None, "peak_bytes_per_s": None}),
    ("trace_jobs", {"matched_has_job"}, {"job_id": None}),
    ("trace_jobs", {"matched_has_job"}, {"job_match": "none"}),
    ("trace_jobs", {"few_ambiguous"}, {"job_match": "ambiguous", "job_id": None}),
    ("trace_jobs", {"ends_after_start"}, {"started_at": NOON + 2 * HOUR}),
    ("trace_jobs", {"dated_by_its_end"}, {"ended_at": None}),
    ("trace_jobs", {"dated_by_its_end"}, {"ended_on": None}),
    ("trace_jobs", set(), {"ended_on": None, "ended_at": None, "started_at": None}),
    ("trace_counters", {"unread_has_reason", "modules_are_sound"}, NOT_READ | {"reason": None}),
    ("trace_counters", {"modules_are_sound"}, NOT_READ),
    ("trace_counters", {"modules_are_sound", "unread_counts_nothing"}, NOT_READ | {"is_counted": True}),
    ("trace_counters", {"modules_are_sound", "unread_counts_nothing"}, NOT_READ | {"written_bytes": 0}),
    ("trace_counters", {"partial_is_marked"}, {"is_partial": True}),
    ("trace_counters", {"modules_are_whole"}, {"is_partial": True, "outcome": "partial"}),
    ("trace_counters", {"times_in_order"}, {"read_began_s": 2.1}),
    ("trace_heatmaps", {"bins_are_all_there"}, {"bin_bytes": [1, 0]}),
    ("trace_signals", {"steps_are_all_there"}, {"step_count": 3}),
    ("trace_signals", {"some_bytes"}, {"volume_bytes": 0.0}),
    ("trace_signals", {"finer_than_counters"}, {"basis": "interval"}),
    ("samples", {"steps_match_rates"}, {"sample_bytes_per_s": [1.0, 2.0]}),
    ("samples", {"steps_match_ratios"}, {"reported_ratios": [1.0, 1.0]}),
    ("samples", {"grid_starts_with_run"}, {"grid_started_at": NOON - timedelta(seconds=3)}),
    ("samples", {"has_steps"}, {"step_count": 0, "sample_bytes_per_s": [], "reported_ratios": []}),
    ("applications", {"has_samples"}, {"sample_count": 0}),
    ("applications", {"first_before_last"}, {"last_at": NOON - HOUR}),
    ("classes", {"unclassified_has_no_label"}, {"outcome": "too_short"}),
    ("classes", {"classified_has_label"}, {"label": None}),
    ("classes", {"classified_has_sections"}, {"section_bytes": None}),
    ("classes", {"four_sections"}, {"section_bytes": [1.0, 2.0, 3.0]}),
    ("classes", {"server_traffic_is_shared"}, {"is_shared_traffic": False}),
    ("classes", {"job_has_start"}, {"started_at": None}),
    ("periods", {"periodic_has_period"}, {"frequency_hz": None}),
    ("periods", {"periodic_has_period"}, {"window_end_s": None}),
    ("periods", {"unperiodic_has_no_period"}, {"outcome": "aperiodic"}),
    ("periods", {"period_is_inverse_of_frequency"}, {"period_s": 20.1}),
    ("periods", {"two_full_cycles"}, {"window_end_s": 39.0}),
    ("periods", {"controlled_has_probability"}, {"false_alarm_probability": None}),
    ("periods", {"one_default"}, {"is_default": False}),
    ("periods", {"one_default"}, {"method": "dft"}),
    ("periods", {"candidates_have_cosines"}, {"candidate_phases_rad": [-1.0]}),
    ("periods", {"score_is_of_sigmas"}, {"periodicity_score": 0.6}),
    ("periods", {"server_traffic_is_shared"}, {"is_shared_traffic": False}),
    ("periods", {"job_has_start"}, {"started_at": None}),
    ("periods", set(), {"method": "dft", "is_default": False, "false_alarm_probability": None}),
    ("jobs", {"start_year_plausible", "end_year_plausible", "start_year_near_others"}, of_year(1970)),
    ("jobs", {"start_year_plausible", "end_year_plausible", "start_year_near_others"}, of_year(2106)),
    ("jobs", {"start_year_near_others"}, of_year(2029)),
    ("jobs", set(), of_year(2027)),
    ("series_intervals", {"gap_has_flag", "most_intervals_measured"}, {"bytes_per_s": None}),
    ("ticks", {"controllers_within_expected", "controllers_mostly_complete"}, {"controller_count": 3}),
    ("job_io", {"measured_has_values", "volume_agrees_with_rates"}, {"peak_bytes_per_s": None}),
    ("job_io", {"unmeasured_has_no_values"}, NO_POLLS),
    ("job_io", {"unmeasured_has_no_polls"}, NO_POLLS | NO_VALUES | {"poll_count": 1}),
    ("job_io", set(), NO_POLLS | NO_VALUES),
    ("job_io", set(), {"mean_bytes_per_s": 1.0 + 1e-12}),
    ("applications", {"one_id_per_application"}, {"user": "same"}),
    ("applications", {"one_id_per_application"}, {"user": "same"}),
]
