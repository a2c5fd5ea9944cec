-- samples.metadata_steps: one row per traced run, kind of metadata calls and grid step with starts of such calls
with

calls as (
    select * from landed.trace_metadata
    where not is_nested
),

metadata_grids as (
    select * from samples.metadata_grids
),

counted as (
    select
        calls.trace_id,
        calls.operation as operation_group,
        least(greatest(floor(calls.start_s / metadata_grids.interval_s)::bigint, 0), metadata_grids.step_count - 1)
            as call_step,
        count(*) as metadata_call_count
    from calls
    inner join metadata_grids using (trace_id)
    group by all
),

-- all calls together are judged, too
judged as (
    select * from counted
    union all
    select * replace ('all' as operation_group) from counted
)

select
    trace_id,
    operation_group,
    call_step,
    sum(metadata_call_count)::bigint as metadata_call_count
from judged
group by trace_id, operation_group, call_step
order by trace_id, operation_group, call_step
