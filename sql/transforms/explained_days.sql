-- transforms.explained_days: one row per file system, UTC day and direction that was polled
with

ticks as (
    select * from stage.ticks
),

attributed_io as (
    select * from transforms.attributed_io
),

directed as (
    select
        filesystem,
        to_timestamp(ceil(epoch(polled_at) / 60) * 60) as minute_at,
        unnest(['read', 'write']) as direction,
        unnest([read_bytes, written_bytes]) as moved_bytes
    from ticks
),

-- a minute belongs to the day of its right edge, as a poll does
measured as (
    select
        (minute_at at time zone 'UTC')::date as polled_on,
        filesystem,
        direction,
        minute_at,
        sum(moved_bytes)::double as measured_bytes
    from directed
    where moved_bytes is not null and list_contains($days::date[], (minute_at at time zone 'UTC')::date)
    group by all
),

explained as (
    select
        filesystem,
        direction,
        minute_at,
        sum(explained_bytes order by explained_bytes) as explained_bytes,
        sum(explained_bytes * certainty order by explained_bytes, certainty) as certain_bytes
    from attributed_io
    where
        minute_at between timezone('UTC', list_min($days::date[])::timestamp)
        and timezone('UTC', list_max($days::date[])::timestamp + interval 1 day)
    group by all
)

select
    measured.polled_on,
    measured.filesystem,
    measured.direction,
    sum(measured.measured_bytes) as measured_bytes,
    sum(coalesce(explained.explained_bytes, 0) order by measured.minute_at) as explained_bytes,
    sum(greatest(0, measured.measured_bytes - coalesce(explained.explained_bytes, 0)) order by measured.minute_at)
        as unexplained_bytes,
    sum(greatest(0, coalesce(explained.explained_bytes, 0) - measured.measured_bytes) order by measured.minute_at)
        as over_explained_bytes,
    case
        when sum(explained.explained_bytes) > 0
            then least(
                    1,
                    sum(explained.certain_bytes order by measured.minute_at)
                    / sum(explained.explained_bytes order by measured.minute_at)
                )
    end as certainty
from measured
left join explained using (filesystem, direction, minute_at)
group by all
order by measured.polled_on, measured.filesystem, measured.direction
