-- stage.repeated_polls: one row per controller and instant with several landed polls, with the one that is used
with

polls as (
    select * from landed.polls
),

repeated as (
    select
        filesystem,
        controller,
        polled_at
    from polls
    group by all
    having count(*) > 1
),

weighed as (
    select
        polls.*,
        polls.read_bytes_per_s is null and polls.write_bytes_per_s is null as is_gap,
        round(polls.read_bytes_per_s * polls.interval_s) as read_bytes,
        round(polls.write_bytes_per_s * polls.interval_s) as written_bytes
    from polls
    semi join repeated using (filesystem, controller, polled_at)
),

-- a value beats a gap, then what was landed first counts
ranked as (
    select
        *,
        row_number() over this_poll as rank,
        first_value(read_bytes) over this_poll as kept_read_bytes,
        first_value(written_bytes) over this_poll as kept_written_bytes
    from weighed
    window this_poll as (
        partition by filesystem, controller, polled_at order by is_gap, part_order, part_row
    )
)

select
    filesystem,
    controller,
    polled_at,
    any_value(interval_s) filter (where rank = 1) as interval_s,
    any_value(read_bytes_per_s) filter (where rank = 1) as read_bytes_per_s,
    any_value(write_bytes_per_s) filter (where rank = 1) as write_bytes_per_s,
    any_value(read_iops) filter (where rank = 1) as read_iops,
    any_value(write_iops) filter (where rank = 1) as write_iops,
    count(*) - 1 - count(*) filter (
        where not is_gap
        and (
            read_bytes is distinct from kept_read_bytes or written_bytes is distinct from kept_written_bytes
        )
    ) as duplicate_poll_count,
    count(*) filter (
        where not is_gap
        and (
            read_bytes is distinct from kept_read_bytes or written_bytes is distinct from kept_written_bytes
        )
    ) as conflicting_poll_count
from ranked
group by all
order by filesystem, polled_at, controller
