-- transforms.inference_checks: one row per run, file system and direction with a measured and a trusted inferred answer
with

inference_runs as (
    select
        *,
        job_id as subject_id
    from transforms.inference_runs
    where refusal is null and metric = 'bytes'
),

measured_classes as (
    select * from transforms.classes
    where subject_kind = 'job' and basis <> 'inferred' and metric = 'bytes'
),

inferred_classes as (
    select * from transforms.inferred_classes
    where metric = 'bytes'
),

measured_periods as (
    select * from transforms.periods
    where subject_kind = 'job' and basis <> 'inferred' and is_default
),

inferred_periods as (
    select * from transforms.inferred_periods
    where is_default
),

compared as (
    select
        inference_runs.ended_on,
        inference_runs.cluster,
        inference_runs.job_id,
        inference_runs.started_at,
        inference_runs.filesystem,
        inference_runs.direction,
        inference_runs.application_id,
        inference_runs.expected_correlation,
        inference_runs.is_training_run,
        coalesce(measured_classes.basis, measured_periods.basis) as basis,
        measured_classes.label as measured_label,
        inferred_classes.label as inferred_label,
        measured_classes.label = inferred_classes.label as is_same_class,
        measured_periods.period_s as measured_period_s,
        inferred_periods.period_s as inferred_period_s,
        measured_periods.outcome in ('periodic', 'aperiodic', 'no_io')
        and inferred_periods.outcome in ('periodic', 'aperiodic', 'no_io') as is_analyzed,
        inferred_periods.period_s / measured_periods.period_s as period_ratio,
        greatest(period_ratio, 1 / period_ratio) as multiple
    from inference_runs
    left join measured_classes using (cluster, subject_id, started_at, filesystem, direction)
    left join inferred_classes using (cluster, subject_id, started_at, filesystem, direction)
    left join measured_periods using (cluster, subject_id, started_at, filesystem, direction)
    left join inferred_periods using (cluster, subject_id, started_at, filesystem, direction)
),

-- two periods that differ by less than a tenth are the same; that is also how near a harmonic lies
agreeing as (
    select
        *,
        case
            when not coalesce(is_analyzed, false) then null
            when measured_period_s is null and inferred_period_s is null then 'aperiodic'
            when inferred_period_s is null then 'missed'
            when measured_period_s is null then 'false'
            when abs(period_ratio - 1) < 0.1::double then 'same'
            when
                round_even(multiple, 0) >= 2 and abs(multiple / round_even(multiple, 0) - 1) < 0.1::double
                then 'harmonic'
            else 'different'
        end as period_agreement
    from compared
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    application_id,
    basis,
    expected_correlation,
    is_training_run,
    measured_label,
    inferred_label,
    is_same_class,
    measured_period_s,
    inferred_period_s,
    period_agreement
from agreeing
where is_same_class is not null or period_agreement is not null
order by cluster, job_id, started_at, filesystem, direction
