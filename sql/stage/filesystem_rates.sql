-- stage.filesystem_rates: one row per file system, poll instant and interval, summed over controllers
with

poll_ticks as (
    select * from stage.poll_ticks
),

polls_daily as (
    select * from stage.polls_daily
)

select
    poll_ticks.polled_on,
    poll_ticks.filesystem,
    poll_ticks.polled_at,
    poll_ticks.interval_s,
    poll_ticks.controller_count,
    polls_daily.controller_count as expected_controller_count,
    poll_ticks.read_bytes,
    poll_ticks.written_bytes,
    poll_ticks.read_count,
    poll_ticks.write_count
from poll_ticks
inner join polls_daily using (polled_on, filesystem)
where poll_ticks.controller_count > 0
order by poll_ticks.filesystem, poll_ticks.polled_at, poll_ticks.interval_s
