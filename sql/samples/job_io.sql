-- samples.job_io: one row per application run, file system and direction
with

runs as (
    select * from samples.runs
),

ticks as (
    select * from stage.ticks
),

wanted as (
    select * from runs
    where list_contains($days::date[], ended_on)
),

samples as (
    select * from samples.samples
),

-- running totals of what had been polled by each right edge, and of what had begun by each left edge
by_right_edge as (
    select
        filesystem,
        polled_at,
        sum(sum(read_bytes)) over edges as read_bytes,
        sum(sum(written_bytes)) over edges as written_bytes,
        sum(count(read_bytes)) over edges as read_tick_count,
        sum(count(written_bytes)) over edges as written_tick_count,
        sum(sum(round(interval_s * 1e6)::bigint)) over edges as covered_us,
        sum(sum(controller_count)) over edges as poll_count
    from ticks
    group by filesystem, polled_at
    window edges as (partition by filesystem order by polled_at)
),

by_left_edge as (
    select
        filesystem,
        begun_at,
        sum(sum(read_bytes)) over edges as read_bytes,
        sum(sum(written_bytes)) over edges as written_bytes,
        sum(count(read_bytes)) over edges as read_tick_count,
        sum(count(written_bytes)) over edges as written_tick_count,
        sum(sum(round(interval_s * 1e6)::bigint)) over edges as covered_us,
        sum(sum(controller_count)) over edges as poll_count
    from (select *, polled_at - to_microseconds(round(interval_s * 1e6)::bigint) as begun_at from ticks)
    group by filesystem, begun_at
    window edges as (partition by filesystem order by begun_at)
),

-- a poll belongs to the run if its right edge lies in [started_at, ended_at + interval_s): it has begun
-- before the run ends, and it is not over before the run starts
moved as (
    select
        wanted.cluster,
        wanted.job_id,
        wanted.started_at,
        wanted.filesystem,
        coalesce(by_left_edge.read_bytes, 0) - coalesce(by_right_edge.read_bytes, 0) as read_bytes,
        coalesce(by_left_edge.written_bytes, 0) - coalesce(by_right_edge.written_bytes, 0) as written_bytes,
        coalesce(by_left_edge.read_tick_count, 0) - coalesce(by_right_edge.read_tick_count, 0) as read_tick_count,
        coalesce(by_left_edge.written_tick_count, 0)
        - coalesce(by_right_edge.written_tick_count, 0) as written_tick_count,
        (coalesce(by_left_edge.covered_us, 0) - coalesce(by_right_edge.covered_us, 0)) / 1e6 as covered_s,
        (coalesce(by_left_edge.poll_count, 0) - coalesce(by_right_edge.poll_count, 0))::bigint as poll_count
    from wanted
    asof left join by_left_edge
        on wanted.filesystem = by_left_edge.filesystem and wanted.ended_at > by_left_edge.begun_at
    asof left join by_right_edge
        on wanted.filesystem = by_right_edge.filesystem and wanted.started_at > by_right_edge.polled_at
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
neighbours as (
    select
        wanted.cluster,
        wanted.job_id,
        wanted.started_at,
        wanted.filesystem,
        coalesce(starts.started_count, 0) - coalesce(ends.ended_count, 0)
        - case when wanted.ended_at > wanted.started_at then 1 else 0 end as concurrent_job_count
    from wanted
    asof left join starts
        on coalesce(wanted.filesystem, '') = starts.place and wanted.ended_at > starts.at_start
    asof left join ends
        on coalesce(wanted.filesystem, '') = ends.place and wanted.started_at >= ends.at_end
),

measured as (
    select
        wanted.ended_on,
        wanted.expected_controller_count * (wanted.last_step - wanted.first_step + 1) as expected_poll_count,
        moved.*,
        neighbours.concurrent_job_count
    from wanted
    inner join moved
        on wanted.cluster = moved.cluster
        and wanted.job_id = moved.job_id
        and wanted.started_at = moved.started_at
        and wanted.filesystem is not distinct from moved.filesystem
    inner join neighbours
        on wanted.cluster = neighbours.cluster
        and wanted.job_id = neighbours.job_id
        and wanted.started_at = neighbours.started_at
        and wanted.filesystem is not distinct from neighbours.filesystem
),

directed as (
    select
        *,
        unnest(['read', 'write']) as direction,
        unnest([read_tick_count, written_tick_count]) > 0 as is_measured,
        unnest([read_bytes, written_bytes])::double as moved_bytes
    from measured
)

select
    directed.ended_on,
    directed.cluster,
    directed.job_id,
    directed.started_at,
    directed.filesystem,
    directed.direction,
    case when directed.is_measured then 'measured' else 'no_polls' end as outcome,
    case when directed.is_measured then directed.moved_bytes end as volume_bytes,
    case when directed.is_measured then directed.moved_bytes / directed.covered_s end as mean_bytes_per_s,
    list_max(samples.sample_bytes_per_s) as peak_bytes_per_s,
    case when directed.is_measured then directed.poll_count else 0 end as poll_count,
    case
        when directed.is_measured then greatest(0, 1 - directed.poll_count / directed.expected_poll_count)
    end as missing_ratio,
    directed.concurrent_job_count::bigint as concurrent_job_count
from directed
left join samples
    on directed.is_measured
    and directed.cluster = samples.cluster
    and directed.job_id = samples.job_id
    and directed.started_at = samples.started_at
    and directed.filesystem = samples.filesystem
    and directed.direction = samples.direction
order by
    directed.ended_on,
    directed.cluster,
    directed.job_id,
    directed.started_at,
    directed.filesystem,
    directed.direction
