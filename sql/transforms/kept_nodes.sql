-- transforms.kept_nodes: one row per traced run of `kept_periods`, direction and node
with

released_nodes as (
    select * from released.node_periods
),

kept_periods as (
    select
        *,
        subject_id as trace_id
    from transforms.kept_periods
    where subject_kind = 'trace'
)

select
    released_nodes.ended_on,
    released_nodes.trace_id,
    released_nodes.direction,
    released_nodes.host,
    released_nodes.outcome,
    released_nodes.node_bytes,
    released_nodes.window_start_s,
    released_nodes.window_end_s,
    released_nodes.sampling_hz,
    released_nodes.frequency_hz,
    released_nodes.period_s,
    released_nodes.period_error_s,
    released_nodes.confidence,
    released_nodes.false_alarm_probability,
    released_nodes.lag_s,
    released_nodes.concentration_ratio
from released_nodes
semi join kept_periods using (trace_id, direction)
order by released_nodes.trace_id, released_nodes.direction, released_nodes.host
