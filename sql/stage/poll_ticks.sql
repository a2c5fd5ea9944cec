-- stage.poll_ticks: one row per file system, poll instant and interval, with counts of its polls by state
with

polls as (
    select * from landed.polls
),

repeated_polls as (
    select * from stage.repeated_polls
),

distinct_polls as (
    select
        filesystem,
        polled_at,
        interval_s,
        read_bytes_per_s,
        write_bytes_per_s,
        read_iops,
        write_iops,
        0 as duplicate_poll_count,
        0 as conflicting_poll_count
    from polls
    anti join repeated_polls using (filesystem, controller, polled_at)
    union all by name
    select
        filesystem,
        polled_at,
        interval_s,
        read_bytes_per_s,
        write_bytes_per_s,
        read_iops,
        write_iops,
        duplicate_poll_count,
        conflicting_poll_count
    from repeated_polls
),

-- beyond 2^53 a double cannot represent single bytes, and a few such polls overflow every sum
judged as (
    select
        *,
        read_bytes_per_s is null and write_bytes_per_s is null as is_gap,
        coalesce(greatest(read_bytes_per_s, write_bytes_per_s) > $max_controller_bytes_per_s, false)
        or coalesce(greatest(read_bytes_per_s, write_bytes_per_s) * interval_s > 2 ** 53, false) as is_implausible
    from distinct_polls
),

counted as (
    select
        *,
        not is_gap
        and not is_implausible
        and coalesce(greatest(read_iops, write_iops) * interval_s <= 2 ** 53, false) as has_operations
    from judged
)

-- whole bytes and operations, so that every sum is exact whatever its order; no cast may fail on what the filter
-- leaves out
select
    (polled_at at time zone 'UTC')::date as polled_on,
    filesystem,
    polled_at,
    interval_s,
    count(*) filter (where not is_gap and not is_implausible) as controller_count,
    sum(try_cast(round(read_bytes_per_s * interval_s) as bigint)) filter (where not is_implausible)::bigint
        as read_bytes,
    sum(try_cast(round(write_bytes_per_s * interval_s) as bigint)) filter (where not is_implausible)::bigint
        as written_bytes,
    sum(try_cast(round(read_iops * interval_s) as bigint)) filter (where has_operations)::bigint
        as read_count,
    sum(try_cast(round(write_iops * interval_s) as bigint)) filter (where has_operations)::bigint
        as write_count,
    count(*) filter (where is_gap) as gap_poll_count,
    sum(duplicate_poll_count)::bigint as duplicate_poll_count,
    sum(conflicting_poll_count)::bigint as conflicting_poll_count,
    count(*) filter (where is_implausible) as implausible_poll_count
from counted
group by all
order by filesystem, polled_at, interval_s
