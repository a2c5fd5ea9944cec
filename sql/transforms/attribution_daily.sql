-- transforms.attribution_daily: one row per file system, UTC day and direction that was polled
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

attributed as (
    select
        filesystem,
        direction,
        minute_at,
        sum(attributed_bytes order by attributed_bytes) as attributed_bytes,
        coalesce(sum(attributed_bytes order by attributed_bytes) filter (estimate_source = 'attributed'), 0)
            as signature_bytes,
        sum(attributed_bytes * confidence order by attributed_bytes, confidence) as certain_bytes
    from attributed_io
    where
        minute_at between timezone('UTC', list_min($days::date[])::timestamp)
        and timezone('UTC', list_max($days::date[])::timestamp + interval 1 day)
    group by all
),

minutes as (
    select
        measured.*,
        coalesce(attributed.attributed_bytes, 0) as attributed_bytes,
        coalesce(attributed.signature_bytes, 0) as signature_bytes,
        coalesce(attributed.attributed_bytes - attributed.signature_bytes, 0) as known_bytes,
        attributed.certain_bytes
    from measured
    left join attributed using (filesystem, direction, minute_at)
)

select
    polled_on,
    filesystem,
    direction,
    sum(measured_bytes order by minute_at) as measured_bytes,
    sum(attributed_bytes order by minute_at) as attributed_bytes,
    sum(greatest(0, measured_bytes - attributed_bytes) order by minute_at) as unattributed_bytes,
    sum(greatest(0, known_bytes - measured_bytes) order by minute_at) as excess_own_bytes,
    sum(greatest(0, signature_bytes - greatest(0, measured_bytes - known_bytes)) order by minute_at)
        as excess_attributed_bytes,
    case
        when sum(attributed_bytes) > 0
            then least(1, sum(certain_bytes order by minute_at) / sum(attributed_bytes order by minute_at))
    end as confidence
from minutes
group by all
order by polled_on, filesystem, direction
