-- transforms.signature_curves: one row per extracted default signature, and whether its released result is kept
with

signatures as (
    select * from transforms.signatures
    where (is_default or metric = 'operations') and outcome = 'extracted'
),

signature_points as (
    select * from transforms.signature_points
),

released_signatures as (
    select * from released.signatures
    where (is_default or metric = 'operations') and outcome = 'extracted'
),

released_points as (
    select * from released.signature_points
),

-- rows of the table that is computed from signatures, such as periods
answered as (
    select distinct
        subject_id as application_id,
        filesystem,
        direction,
        metric
    from run.released_answers
    where subject_kind = 'application'
),

curves as (
    select
        application_id,
        filesystem,
        direction,
        metric,
        list(coalesce(bytes_per_s, operations_per_s) order by offset_s) as curve_per_s
    from signature_points
    semi join signatures using (application_id, filesystem, direction, metric, method)
    group by application_id, filesystem, direction, metric
),

released_curves as (
    select
        application_id,
        filesystem,
        direction,
        metric,
        list(coalesce(bytes_per_s, operations_per_s) order by offset_s) as curve_per_s
    from released_points
    semi join released_signatures using (application_id, filesystem, direction, metric, method)
    group by application_id, filesystem, direction, metric
),

unchanged as (
    select curves.*
    from curves
    semi join answered using (application_id, filesystem, direction, metric)
    semi join released_curves using (application_id, filesystem, direction, metric, curve_per_s)
)

select
    curves.application_id,
    curves.filesystem,
    curves.direction,
    curves.metric,
    curves.curve_per_s,
    unchanged.application_id is not null as is_kept
from curves
left join unchanged using (application_id, filesystem, direction, metric)
order by curves.application_id, curves.filesystem, curves.direction, curves.metric
