"""Map the public names of commit 18b5d00 to the names that replaced them.

`iosig upgrade` converts warehouses and settings files with these maps. Queries and commands with a former name are
refused with a message that contains the new name. docs/upgrading.md lists all renames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: `iosig upgrade` converts warehouses and settings files of this commit
COMMIT = "18b5d00"

#: tables: former name = name
TABLES = {
    "counter_days": "counters_daily",
    "counter_ends": "counter_last_values",
    "counter_rises": "counter_deltas",
    "counted_jobs": "counter_job_totals",
    "explained_days": "attribution_daily",
    "poll_days": "polls_daily",
    "quality_days": "quality_daily",
    "ticks": "filesystem_rates",
    "unassigned_io": "unattributed_counter_io",
    "unnamed_patterns": "unattributed_patterns",
}

#: tables that were replaced by one with other columns
REPLACED_TABLES = {"best_job_io": "job_io"}

#: columns of every table that has them: former name = name
COLUMNS = {
    # traces, requests, calls and bursts: seconds on the run's own clock
    "began_s": "start_s",
    "ceased_s": "end_s",
    "started_s": "start_s",
    "ended_s": "end_s",
    "peaked_s": "peak_s",
    "read_began_s": "read_start_s",
    "read_ceased_s": "read_end_s",
    "write_began_s": "write_start_s",
    "write_ceased_s": "write_end_s",
    "opened_s": "open_start_s",
    "open_ended_s": "open_end_s",
    "closed_s": "close_end_s",
    "window_began_s": "window_start_s",
    "window_ceased_s": "window_end_s",
    "changed_s": "change_s",
    "last_phase_s": "last_phase_start_s",
    # queue
    "seen_at": "observed_at",
    "seen_on": "observed_on",
    # counters
    "counted_on": "scraped_on",
    "counted_since_at": "counter_started_at",
    "counted_from_at": "coverage_started_at",
    "counted_until_at": "coverage_ended_at",
    "from_at": "interval_started_at",
    "until_at": "interval_ended_at",
    "unknown_rise_count": "unknown_delta_count",
    "is_exceeded": "is_overcounted",
    "exceeded_target_count": "overcounted_target_count",
    "other_sample_count": "redundant_sample_count",
    # signatures and applications
    "trust": "expected_correlation",
    "cov": "cv",
    "first_at": "first_run_started_at",
    "last_at": "last_run_ended_at",
    "appeared_burst_count": "added_burst_count",
    "vanished_burst_count": "removed_burst_count",
    "lacked_burst_count": "missing_burst_count",
    "change_of_volume": "relative_volume_change",
    "is_used": "is_training_run",
    "times_exact": "overestimation_factor",
    "true_volume_bytes": "traced_bytes",
    # attribution
    "certainty": "confidence",
    "explained_bytes": "attributed_bytes",
    "unexplained_bytes": "unattributed_bytes",
    "low_bytes": "attributed_low_bytes",
    "high_bytes": "attributed_high_bytes",
    "over_attributed_bytes": "excess_attributed_bytes",
    "over_explained_bytes": "excess_own_bytes",
    # slowdowns
    "longer_s": "delay_s",
    "low_longer_s": "delay_low_s",
    "high_longer_s": "delay_high_s",
    "burst_began_at": "burst_started_at",
    "others_bytes": "interfering_bytes",
    "nobodys_bytes": "unattributed_bytes",
    "first_job_id": "top_interferer_job_id",
    "first_started_at": "top_interferer_started_at",
    "first_application_id": "top_interferer_application_id",
    "first_bytes": "top_interferer_bytes",
    # patterns without an application
    "appearance_burst_count": "occurrence_burst_count",
    "appearance_bytes": "occurrence_bytes",
    "appearance_count": "occurrence_count",
    "appearance_s": "occurrence_duration_s",
    "appeared_bytes": "occurrence_volumes_bytes",
    "appeared_s": "occurrence_starts_s",
    "lasted_s": "occurrence_durations_s",
    "first_appeared_at": "first_occurrence_at",
    "last_appeared_at": "last_occurrence_at",
    "covered_appearance_count": "covered_occurrence_count",
    "chance_probability": "p_value",
    # networks
    "negative_count": "negative_time_count",
}

#: columns of single tables (by the table's present name): former name = name
TABLE_COLUMNS = {
    "sample_sets": {"volume_bytes": "sample_bytes"},
    "network_edges": {"longest_s": "max_transfer_time_s"},
    "network_patterns": {"is_whole": "is_whole_run"},
    "node_periods": {"delay_s": "lag_s"},
    "slowdowns": {"late_s": "start_delay_s"},
}

#: values of columns of every table that has them: former value = value
VALUES = {
    "method": {"controlled": "null_tested", "stretched": "time_normalized", "warped": "elastic"},
    "outcome": {
        "hurt": "slowed",
        "not_hurt": "not_slowed",
        "untrusted_signature": "unreliable_signature",
    },
    "next_burst_outcome": {"over": "ended"},
}

#: values with another meaning now, by column: former value = value. Released rows are converted; settings files keep
#: theirs. `iosi` was IOSI with filters of our own, and is the published method now
REDEFINED_VALUES = {"method": {"iosi": "iosi_filtered"}}

#: values of columns of single tables
TABLE_VALUES = {
    "network_patterns": {"outcome": {"named": "matched", "none_fits": "no_match"}},
    "network_runs": {"outcome": {"made": "built"}},
    "releases": {"verdict": {"warned": "passed with warnings"}},
    "unattributed_patterns": {
        "outcome": {
            "named": "attributed",
            "nothing_recurs": "no_pattern",
            "unnamed": "unattributed",
            "unsure": "ambiguous",
        }
    },
}

#: suffixes of the checks that a contract implies; their names begin with the column's name
_IMPLIED_CHECKS = ("finite", "in_bounds", "known", "not_null")


def get_renamed_columns(table_name: str) -> dict[str, str]:
    """Return the renamed columns that a table may have: former name -> name."""
    return COLUMNS | TABLE_COLUMNS.get(table_name, {})


def present_names(name: str) -> list[str]:
    """Return the current names for a former name of a table, column or value; names in single tables come first."""
    by_table = [*TABLE_COLUMNS.values(), COLUMNS, TABLES, REPLACED_TABLES, CHECKS, *VALUES.values()]
    return [names[name] for names in by_table if name in names]


def get_renamed_values(table_name: str) -> dict[str, dict[str, str]]:
    """Map the renamed values of a table: column -> former value = value."""
    checks = CHECKS | {f"{old}_{kind}": f"{new}_{kind}" for old, new in COLUMNS.items() for kind in _IMPLIED_CHECKS}
    names = {"expectation": checks, "rule": checks, "table_name": TABLES}
    return names | list_values() | TABLE_VALUES.get(table_name, {})


def list_values() -> dict[str, dict[str, str]]:
    """Map the renamed and redefined values of every table: column -> former value = value."""
    return {column: values | REDEFINED_VALUES.get(column, {}) for column, values in VALUES.items()}


#: settings: former section.field = section.field
SETTINGS = {
    "advice.sustained_s": "advice.sustained_window_s",
    "classes.uniform_cov": "classes.uniform_cv",
    "counters.late_s": "counters.grace_s",
    "engine.runner": "engine.executor",
    "joint.every_days": "joint.interval_days",
    "joint.most_application_count": "joint.max_application_count",
    "limits.expansion_ratio": "limits.max_expansion_factor",
    "limits.json_item_bytes": "limits.max_json_item_bytes",
    "limits.line_bytes": "limits.max_line_bytes",
    "limits.refused_count": "limits.max_refused_count",
    "live.first_days": "live.backfill_days",
    "live.late_s": "live.grace_s",
    "networks.most_node_count": "networks.max_node_count",
    "polls.controller_limit_bytes_per_s": "polls.max_controller_bytes_per_s",
    "report.into": "report.output",
    "schedule.wait_s": "schedule.lock_timeout_s",
    "signatures.least_sample_count": "signatures.min_sample_count",
    "signatures.longest_s": "signatures.max_duration_s",
    "signatures.most_sample_count": "signatures.max_sample_count",
    "slurm.wait_s": "slurm.start_timeout_s",
    "watch.jump_ratio": "alerts.anomaly_factor",
    "watch.least_free_ratio": "alerts.min_free_ratio",
    "watch.mail_to": "alerts.mail_to",
    "watch.release_late_after_s": "alerts.max_release_delay_s",
    "watch.sendmail": "alerts.sendmail",
    "watch.silent_ratio": "alerts.stale_factor",
    "watch.webhook_form": "alerts.webhook_format",
    "watch.webhook_variable": "alerts.webhook_variable",
}

#: removed settings of commit 18b5d00
REMOVED_SETTINGS = ("periods.server_window_levels",)

#: values of settings: setting (its present name), former value = value
SETTING_VALUES = {
    "periods.methods": VALUES["method"],
    "periods.server_methods": VALUES["method"],
    "signatures.methods": VALUES["method"],
}


def rename_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Rename settings and their values to the current names, by section and field, and drop removed settings.

    Sections without a rename, and tables with keys that the site chose, stay unchanged.
    """
    result: dict[str, Any] = {}
    for section, fields in settings.items():
        if not isinstance(fields, Mapping):
            result[section] = fields
            continue
        result.setdefault(section, {})
        for field, value in fields.items():
            if (name := f"{section}.{field}") in REMOVED_SETTINGS:
                continue
            place = SETTINGS.get(name, name)
            new_section, _, new_field = place.partition(".")
            values = SETTING_VALUES.get(place, {})
            renamed = [values.get(item, item) for item in value] if values and isinstance(value, list) else value
            result.setdefault(new_section, {})[new_field] = renamed
    return {section: fields for section, fields in result.items() if fields or not settings.get(section)}


#: commands: former command = command
COMMANDS = {
    "study unexplained": "study unattributed",
    "who --hurt": "slowdowns",
    "who --unknown": "patterns",
}

#: options of commands: former option = option
OPTIONS = {
    "advise": {"--most-delay": "--max-delay", "--on": "--filesystem"},
    "backfill": {"--wait": "--lock-timeout"},
    "compress": {"--into": "--output"},
    "demo": {"--into": "--output"},
    "expand": {"--into": "--output"},
    "export": {"--into": "--output", "--to": "--output"},
    "extrapolate": {"--into": "--output"},
    "forget": {"--wait": "--lock-timeout"},
    "land": {"--only-done": "--require-marker"},
    "network": {"--most-nodes": "--max-nodes"},
    "plot": {"--to": "--output"},
    "predict": {"--anew": "--reset", "--every": "--min-interval", "--idle-end": "--idle-timeout"},
    "replay": {"--into": "--output", "--trace-into": "--trace-output"},
    "report": {"--into": "--output"},
    "run": {"--wait": "--lock-timeout"},
    "status": {"--every": "--interval", "--tell": "--notify", "--to": "--output"},
    "study": {"--into": "--output"},
}

#: fields of JSON documents, in addition to the columns above: former name = name
JSON_FIELDS = {
    "agreeing_ratio": "agreement_ratio",
    "asked_at": "requested_at",
    "begins_at": "starts_at",
    "hurt_run_count": "slowed_run_count",
    "left_out": "excluded",
    "likeliest_jobs": "candidate_jobs",
    "most_delay_s": "max_delay_s",
    "not_waited_on": "not_synchronized_on",
    "nothing": "without_patterns",
    "out_of_reach": "not_erased",
    "unexplained_bytes_per_s": "unattributed_bytes_per_s",
    "usual_bytes": "typical_bytes",
    "usual_s": "typical_interval_s",
    "waited_on": "synchronized_on",
    "why_no_outlook": "no_outlook_reason",
    "witnesses": "reference_sources",
}

#: checks of `quality`, `quality_daily` and `quarantine`: former name = name
CHECKS = {
    "bins_are_all_there": "bin_count_matches",
    "change_is_told": "change_has_flag",
    "controlled_has_probability": "null_tested_has_probability",
    "dated_by_its_end": "ended_on_matches_end",
    "delay_has_concentration": "lag_has_concentration",
    "duty_is_of_burst": "duty_ratio_matches_burst",
    "each_layer_is_told": "layers_are_named",
    "every_target_counts": "no_silent_targets",
    "finer_than_counters": "signal_is_finer_than_counters",
    "input_is_whole": "input_is_complete",
    "interval_is_whole": "interval_is_complete",
    "layers_have_names_of_their_own": "layers_have_distinct_names",
    "longest_is_part_of_sum": "max_time_within_sum",
    "made_says_of_what": "network_has_source",
    "modules_are_whole": "modules_are_complete",
    "most_intervals_measured": "half_of_intervals_measured",
    "named_has_pattern": "match_has_pattern",
    "no_more_polls_than_due": "polls_within_expected",
    "no_more_than_the_target": "jobs_within_target",
    "no_request_takes_most": "no_dominant_request",
    "nothing_refused": "no_rejects",
    "own_bytes_are_kept": "own_bytes_are_the_estimate",
    "peak_where_bytes": "bytes_have_peak",
    "raw_is_cut": "raw_is_truncated",
    "requests_are_whole": "requests_are_complete",
    "rests_on_four_traces": "has_four_rank_counts",
    "score_is_of_sigmas": "score_matches_sigmas",
    "seen_after_submission": "observed_after_submission",
    "several_jobs": "has_several_jobs",
    "shared_and_own_apart": "shared_and_own_are_exclusive",
    "signature_is_like_the_run": "signature_matches_run",
    "signature_is_like_the_trace": "signature_matches_trace",
    "some_bytes": "signal_has_bytes",
    "start_year_near_others": "start_year_near_median",
    "steps_are_all_there": "step_count_matches",
    "trust_is_of_signatures": "only_signatures_have_expected_correlation",
    "trusted": "expected_correlation_is_sufficient",
    "unmade_has_no_network": "refused_network_has_no_numbers",
    "unperiodic_has_no_period": "aperiodic_has_no_period",
    "used_samples_are_of_the_set": "used_samples_within_set",
}
