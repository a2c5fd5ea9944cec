-- transforms.kept_periods: one row per job, series, trace or application, file system, direction, metric and method
with

released_periods as (
    select * from released.periods
    where list_contains($subject_kinds::varchar[], subject_kind)
),

signature_curves as (
    select
        *,
        'application' as subject_kind,
        application_id as subject_id
    from transforms.signature_curves
    where is_kept
),

kept as (
    select * from released_periods
    where subject_kind <> 'application'
    union all
    select released_periods.* from released_periods
    semi join signature_curves using (subject_kind, subject_id, filesystem, direction, metric)
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
from kept
order by subject_kind, cluster, subject_id, started_at, filesystem, direction, metric, method
