-- transforms.explained_days: one row per file system, UTC day and direction that was polled
with

polled_minutes as (
    select * from transforms.polled_minutes
),

attributed_io as (
    select * from transforms.attributed_io
),

-- a minute belongs to the day of its right edge, as a poll does
measured as (
    select
        (minute_at at time zone 'UTC')::date as polled_on,
        filesystem,
        direction,
        minute_at,
        measured_bytes
    from polled_minutes
    where list_contains($days::date[], (minute_at at time zone 'UTC')::date)
),

explained as (
    select
        filesystem,
        direction,
        minute_at,
        sum(explained_bytes order by explained_bytes) as explained_bytes,
        coalesce(sum(explained_bytes order by explained_bytes) filter (estimate_source = 'attributed'), 0)
            as attributed_bytes,
        sum(explained_bytes * certainty order by explained_bytes, certainty) as certain_bytes
    from attributed_io
    where
        minute_at between timezone('UTC', list_min($days::date[])::timestamp)
        and timezone('UTC', list_max($days::date[])::timestamp + interval 1 day)
    group by all
),

minutes as (
    select
        measured.*,
        coalesce(explained.explained_bytes, 0) as explained_bytes,
        coalesce(explained.attributed_bytes, 0) as attributed_bytes,
        coalesce(explained.explained_bytes - explained.attributed_bytes, 0) as known_bytes,
        explained.certain_bytes
    from measured
    left join explained using (filesystem, direction, minute_at)
)

select
    polled_on,
    filesystem,
    direction,
    sum(measured_bytes order by minute_at) as measured_bytes,
    sum(explained_bytes order by minute_at) as explained_bytes,
    sum(greatest(0, measured_bytes - explained_bytes) order by minute_at) as unexplained_bytes,
    sum(greatest(0, known_bytes - measured_bytes) order by minute_at) as over_explained_bytes,
    sum(greatest(0, attributed_bytes - greatest(0, measured_bytes - known_bytes)) order by minute_at)
        as over_attributed_bytes,
    case
        when sum(explained_bytes) > 0
            then least(1, sum(certain_bytes order by minute_at) / sum(explained_bytes order by minute_at))
    end as certainty
from minutes
group by all
order by polled_on, filesystem, direction
