-- transforms.polled_traffic: one row per file system, direction and poll instant
with

filesystem_rates as (
    select * from stage.filesystem_rates
),

-- polls of one instant that differ in their intervals are summed
instants as (
    select
        filesystem,
        polled_at,
        max(interval_s) as interval_s,
        sum(read_bytes)::bigint as read_bytes,
        sum(written_bytes)::bigint as written_bytes
    from filesystem_rates
    group by filesystem, polled_at
)

select
    filesystem,
    unnest(['read', 'write']) as direction,
    polled_at,
    interval_s,
    unnest([read_bytes, written_bytes]) as moved_bytes
from instants
order by filesystem, direction, polled_at
