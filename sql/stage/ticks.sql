-- stage.ticks: one row per file system, poll instant and interval, all its controllers together
with

poll_ticks as (
    select * from stage.poll_ticks
),

poll_days as (
    select * from stage.poll_days
)

select
    poll_ticks.polled_on,
    poll_ticks.filesystem,
    poll_ticks.polled_at,
    poll_ticks.interval_s,
    poll_ticks.controller_count,
    poll_days.controller_count as expected_controller_count,
    poll_ticks.read_bytes,
    poll_ticks.written_bytes
from poll_ticks
inner join poll_days using (polled_on, filesystem)
where poll_ticks.controller_count > 0
order by poll_ticks.filesystem, poll_ticks.polled_at, poll_ticks.interval_s
