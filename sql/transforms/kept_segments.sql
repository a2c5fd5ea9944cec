-- transforms.kept_segments: one row per interval in which a period of `kept_periods` holds
with

released_segments as (
    select * from released.period_segments
),

kept_periods as (
    select * from transforms.kept_periods
)

select
    released_segments.ended_on,
    released_segments.subject_kind,
    released_segments.cluster,
    released_segments.subject_id,
    released_segments.started_at,
    released_segments.filesystem,
    released_segments.direction,
    released_segments.metric,
    released_segments.basis,
    released_segments.method,
    released_segments.segment,
    released_segments.is_main,
    released_segments.window_start_s,
    released_segments.window_end_s,
    released_segments.frequency_hz,
    released_segments.period_s,
    released_segments.period_error_s,
    released_segments.confidence,
    released_segments.segment_bytes,
    released_segments.burst_width_s,
    released_segments.duty_ratio,
    released_segments.false_alarm_probability,
    released_segments.segment_operations
from released_segments
semi join kept_periods
    on released_segments.subject_kind = kept_periods.subject_kind
    and released_segments.cluster is not distinct from kept_periods.cluster
    and released_segments.subject_id = kept_periods.subject_id
    and released_segments.started_at is not distinct from kept_periods.started_at
    and released_segments.filesystem is not distinct from kept_periods.filesystem
    and released_segments.direction = kept_periods.direction
    and released_segments.metric = kept_periods.metric
    and released_segments.method = kept_periods.method
order by
    released_segments.subject_kind,
    released_segments.cluster,
    released_segments.subject_id,
    released_segments.started_at,
    released_segments.filesystem,
    released_segments.direction,
    released_segments.metric,
    released_segments.method,
    released_segments.segment
