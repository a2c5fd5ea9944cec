-- transforms.periods: one row per job, series, trace or application, file system, direction, metric and method
with

measured_periods as (
    select * from transforms.measured_periods
    where list_contains($days::date[], ended_on) or ($has_undated and ended_on is null)
),

inferred_periods as (
    select * from transforms.inferred_periods
),

covering_traces as (
    select * from transforms.covering_traces
),

-- a complete trace gives the answer for the run that it covers
traced as (
    select
        measured_periods.* replace (
            covering_traces.ended_on as ended_on,
            'job' as subject_kind,
            covering_traces.cluster as cluster,
            covering_traces.job_id as subject_id,
            covering_traces.started_at as started_at,
            covering_traces.filesystem as filesystem
        )
    from measured_periods
    inner join covering_traces
        on measured_periods.subject_id = covering_traces.trace_id
        and measured_periods.direction = covering_traces.direction
    where
        measured_periods.subject_kind = 'trace'
        and measured_periods.outcome not in ('interval_only', 'unknown_sizes', 'no_data', 'too_many_gaps')
),

known as (
    select * from measured_periods
    union all
    select * from traced
    anti join measured_periods using (subject_kind, cluster, subject_id, started_at, filesystem, direction, metric)
),

answered as (
    select * from known
    union all
    select * from inferred_periods
    anti join known using (subject_kind, cluster, subject_id, started_at, filesystem, direction, metric)
)

select
    ended_on,
    subject_kind,
    cluster,
    subject_id,
    started_at,
    filesystem,
    direction,
    metric,
    basis,
    method,
    is_default,
    outcome,
    window_start_s,
    window_end_s,
    sampling_hz,
    sampling,
    sample_count,
    missing_ratio,
    frequency_hz,
    period_s,
    period_error_s,
    window_bytes_ratio,
    burst_width_s,
    duty_ratio,
    confidence,
    refined_confidence,
    candidates,
    candidate_amplitudes_bytes_per_s,
    candidate_phases_rad,
    mean_bytes_per_s,
    r_io,
    b_io_bytes_per_s,
    sigma_vol,
    sigma_time,
    periodicity_score,
    bytes_per_period,
    abstraction_error,
    false_alarm_probability,
    method_parameters,
    window_operations_ratio,
    candidate_amplitudes_operations_per_s,
    mean_operations_per_s,
    b_io_operations_per_s,
    operations_per_period
from answered
order by subject_kind, cluster, subject_id, started_at, filesystem, direction, metric, method
