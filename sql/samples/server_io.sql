-- samples.server_io: one row per application run, file system and direction, measured by the storage servers
with

runs as (
    select * from samples.runs
),

filesystem_rates as (
    select * from stage.filesystem_rates
),

samples as (
    select * from samples.samples
),

wanted as (
    select * from runs
    where list_contains($days::date[], ended_on)
),

-- how many runs had started, and how many had ended, by each instant
starts as (
    select distinct
        coalesce(filesystem, '') as place,
        started_at as at_start,
        count(*) over (partition by coalesce(filesystem, '') order by started_at) as started_count
    from runs
    where ended_at is null or ended_at > started_at
),

ends as (
    select distinct
        coalesce(filesystem, '') as place,
        ended_at as at_end,
        count(*) over (partition by coalesce(filesystem, '') order by ended_at) as ended_count
    from runs
    where ended_at > started_at
),

-- runs that overlap: those that start before this one ends, less those that end before it starts, less itself
shared as (
    select
        wanted.*,
        coalesce(starts.started_count, 0) - coalesce(ends.ended_count, 0)
        - case when wanted.ended_at > wanted.started_at then 1 else 0 end as concurrent_job_count
    from wanted
    asof left join starts
        on coalesce(wanted.filesystem, '') = starts.place and wanted.ended_at > starts.at_start
    asof left join ends
        on coalesce(wanted.filesystem, '') = ends.place and wanted.started_at >= ends.at_end
),

bounds as (
    select
        min(started_at) as first_run_started_at,
        max(ended_at) as last_at
    from wanted
),

-- in whole bytes and microseconds, so that every difference of totals is exact; what was not measured of a direction
-- is in no total of it, and what was over before the first run or begun after the last one is in no difference
polls as (
    select
        filesystem_rates.filesystem,
        filesystem_rates.polled_at,
        filesystem_rates.polled_at - to_microseconds(round(filesystem_rates.interval_s * 1e6)::bigint) as begun_at,
        filesystem_rates.read_bytes,
        filesystem_rates.written_bytes,
        case when filesystem_rates.read_bytes is not null then filesystem_rates.controller_count end as read_polls,
        case when filesystem_rates.written_bytes is not null then filesystem_rates.controller_count end as write_polls,
        read_polls * round(filesystem_rates.interval_s * 1e6)::bigint as read_us,
        write_polls * round(filesystem_rates.interval_s * 1e6)::bigint as write_us
    from filesystem_rates
    inner join bounds
        on filesystem_rates.polled_at >= bounds.first_run_started_at
        and filesystem_rates.polled_at - to_microseconds(round(filesystem_rates.interval_s * 1e6)::bigint)
        < bounds.last_at
),

-- running totals of what had been polled by each right edge, and of what had begun by each left edge
by_right_edge as (
    select
        filesystem,
        polled_at,
        sum(sum(read_bytes)) over edges as read_bytes,
        sum(sum(written_bytes)) over edges as written_bytes,
        sum(sum(read_polls)) over edges as read_polls,
        sum(sum(write_polls)) over edges as write_polls,
        sum(sum(read_us)) over edges as read_us,
        sum(sum(write_us)) over edges as write_us
    from polls
    group by filesystem, polled_at
    window edges as (partition by filesystem order by polled_at)
),

by_left_edge as (
    select
        filesystem,
        begun_at,
        sum(sum(read_bytes)) over edges as read_bytes,
        sum(sum(written_bytes)) over edges as written_bytes,
        sum(sum(read_polls)) over edges as read_polls,
        sum(sum(write_polls)) over edges as write_polls,
        sum(sum(read_us)) over edges as read_us,
        sum(sum(write_us)) over edges as write_us
    from polls
    group by filesystem, begun_at
    window edges as (partition by filesystem order by begun_at)
),

-- a poll belongs to the run if its right edge lies in [started_at, ended_at + interval_s): it has begun
-- before the run ends, and it is not over before the run starts
of_runs as (
    select
        shared.*,
        coalesce(by_left_edge.read_bytes, 0) - coalesce(by_right_edge.read_bytes, 0) as read_bytes,
        coalesce(by_left_edge.written_bytes, 0) - coalesce(by_right_edge.written_bytes, 0) as written_bytes,
        coalesce(by_left_edge.read_polls, 0) - coalesce(by_right_edge.read_polls, 0) as read_polls,
        coalesce(by_left_edge.write_polls, 0) - coalesce(by_right_edge.write_polls, 0) as write_polls,
        coalesce(by_left_edge.read_us, 0) - coalesce(by_right_edge.read_us, 0) as read_us,
        coalesce(by_left_edge.write_us, 0) - coalesce(by_right_edge.write_us, 0) as write_us
    from shared
    asof left join by_left_edge
        on shared.filesystem = by_left_edge.filesystem and shared.ended_at > by_left_edge.begun_at
    asof left join by_right_edge
        on shared.filesystem = by_right_edge.filesystem and shared.started_at > by_right_edge.polled_at
),

directed as (
    select
        * exclude (read_bytes, written_bytes, read_polls, write_polls, read_us, write_us),
        unnest(['read', 'write']) as direction,
        unnest([read_bytes, written_bytes]) as moved_bytes,
        unnest([read_polls, write_polls])::bigint as poll_count,
        unnest([read_us, write_us]) as controller_us
    from of_runs
),

-- each controller's polls cover its own share of the time, whether all are polled at one instant or not
measured as (
    select
        *,
        moved_bytes::double as volume_bytes,
        moved_bytes * expected_controller_count / (controller_us / 1e6) as mean_bytes_per_s,
        greatest(0, 1 - poll_count / (expected_controller_count * (last_step - first_step + 1))) as missing_ratio
    from directed
    where poll_count > 0 and step_us is not null
)

-- a step blurs polls that are shorter, or not on the grid: the peak is no lower than the mean, and a neighbor's
-- bytes in the first or last step are not a peak of a run without bytes in its own polls
select
    directed.ended_on,
    directed.cluster,
    directed.job_id,
    directed.started_at,
    directed.filesystem,
    directed.direction,
    case when measured.volume_bytes is null then 'no_polls' else 'measured' end as outcome,
    measured.volume_bytes,
    measured.mean_bytes_per_s,
    case
        when measured.volume_bytes = 0 then 0
        else greatest(list_max(samples.sample_bytes_per_s), measured.mean_bytes_per_s)
    end as peak_bytes_per_s,
    coalesce(measured.poll_count, 0) as poll_count,
    measured.missing_ratio,
    directed.concurrent_job_count::bigint as concurrent_job_count
from directed
left join measured using (cluster, job_id, started_at, filesystem, direction)
left join samples
    on measured.cluster = samples.cluster
    and measured.job_id = samples.job_id
    and measured.started_at = samples.started_at
    and measured.filesystem = samples.filesystem
    and measured.direction = samples.direction
order by
    directed.ended_on,
    directed.cluster,
    directed.job_id,
    directed.started_at,
    directed.filesystem,
    directed.direction
