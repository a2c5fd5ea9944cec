-- stage.counter_polls: one row per poll of a controller
with

scrapes as (
    select * from stage.timed_scrapes
    where not is_job_scrape and previous_at is not null
),

counter_targets as (
    select * from stage.counter_targets
    where has_reads or has_writes
),

counter_deltas as (
    select * from stage.counter_deltas
    where job_key is null
),

-- what targets of a file system say counts, else what its servers say, else its clients: each is all of it
taken as (
    select * from counter_targets
    qualify
        dense_rank() over (
            partition by filesystem order by component not in ('ost', 'mdt'), component <> 'server'
        ) = 1
),

interval_counts as (
    select
        scrapes.scraped_at,
        scrapes.filesystem,
        scrapes.target,
        (epoch_us(scrapes.scraped_at) - epoch_us(scrapes.previous_at)) / 1e6 as interval_s,
        case when taken.has_reads then coalesce(counter_deltas.read_bytes, 0) end as read_bytes,
        case when taken.has_writes then coalesce(counter_deltas.written_bytes, 0) end as written_bytes,
        case when taken.has_reads then coalesce(counter_deltas.read_count, 0) end as read_count,
        case when taken.has_writes then coalesce(counter_deltas.write_count, 0) end as write_count,
        -- not every format counts operations
        bool_or(coalesce(counter_deltas.read_count, counter_deltas.write_count) is not null)
            over (partition by scrapes.filesystem) as has_operations,
        counter_deltas.flag is null as is_known
    from scrapes
    inner join taken using (filesystem, component, target)
    left join counter_deltas
        on scrapes.filesystem = counter_deltas.filesystem
        and scrapes.component = counter_deltas.component
        and scrapes.target = counter_deltas.target
        and scrapes.scraped_at = counter_deltas.interval_ended_at
)

select
    scraped_at as polled_at,
    filesystem,
    target as controller,
    interval_s,
    case when is_known then read_bytes / interval_s end as read_bytes_per_s,
    case when is_known then written_bytes / interval_s end as write_bytes_per_s,
    case when is_known and has_operations then read_count / interval_s end as read_iops,
    case when is_known and has_operations then write_count / interval_s end as write_iops,
    case when not is_known then 'reset' end as flag
from interval_counts
order by polled_at, controller, filesystem
