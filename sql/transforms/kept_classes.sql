-- transforms.kept_classes: one row per job, series, traced run or application, file system, direction and metric
with

released_classes as (
    select * from released.classes
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
    select * from released_classes
    where subject_kind <> 'application'
    union all
    select released_classes.* from released_classes
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
from kept
order by subject_kind, cluster, subject_id, started_at, filesystem, direction, metric
