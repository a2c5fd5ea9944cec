-- transforms.polled_minutes: one row per file system, direction and polled minute
with

filesystem_rates as (
    select * from stage.filesystem_rates
),

-- the bytes of a poll are spread over its interval; of one after a longer gap over its last day, so that the polls of
-- one day reach into the day before and no further
spans as (
    select
        filesystem,
        read_bytes,
        written_bytes,
        least(round(interval_s * 1e6)::bigint, 86_400_000_000) as interval_us,
        epoch_us(polled_at) as until_us,
        until_us - interval_us as from_us,
        unnest(range(from_us // 60_000_000, (until_us + 59_999_999) // 60_000_000)) as minute
    from filesystem_rates
),

shares as (
    select
        filesystem,
        minute,
        (least(until_us, (minute + 1) * 60_000_000) - greatest(from_us, minute * 60_000_000)) / interval_us as share,
        unnest(['read', 'write']) as direction,
        unnest([read_bytes, written_bytes]) as moved_bytes
    from spans
)

select
    filesystem,
    direction,
    make_timestamptz((minute + 1) * 60_000_000) as minute_at,
    sum(moved_bytes * share order by moved_bytes, share) as measured_bytes
from shares
where moved_bytes is not null
group by all
order by filesystem, direction, minute_at
