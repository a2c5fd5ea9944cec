-- transforms.classes: one row per job, series, traced run or application, file system, direction and metric
with

measured_classes as (
    select * from transforms.measured_classes
    where list_contains($days::date[], ended_on) or ($has_undated and ended_on is null)
),

inferred_classes as (
    select * from transforms.inferred_classes
),

covering_traces as (
    select * from transforms.covering_traces
),

-- a complete trace gives the answer for the run that it covers
traced as (
    select
        measured_classes.* replace (
            covering_traces.ended_on as ended_on,
            'job' as subject_kind,
            covering_traces.cluster as cluster,
            covering_traces.job_id as subject_id,
            covering_traces.started_at as started_at,
            covering_traces.filesystem as filesystem
        )
    from measured_classes
    inner join covering_traces
        on measured_classes.subject_id = covering_traces.trace_id
        and measured_classes.direction = covering_traces.direction
    where
        measured_classes.subject_kind = 'trace'
        and measured_classes.outcome not in ('interval_only', 'unknown_sizes', 'no_data', 'too_many_gaps')
),

known as (
    select * from measured_classes
    union all
    select * from traced
    anti join measured_classes using (subject_kind, cluster, subject_id, started_at, filesystem, direction, metric)
),

answered as (
    select * from known
    union all
    select * from inferred_classes
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
    outcome,
    label,
    section_bytes,
    cv,
    volume_bytes,
    node_count,
    duration_s,
    missing_ratio,
    section_operations,
    volume_operations
from answered
order by subject_kind, cluster, subject_id, started_at, filesystem, direction, metric
