-- transforms.attributed_io: one row per application run, file system, direction and minute with traffic of the run
with

polled_minutes as (
    select * from transforms.polled_minutes
),

-- rows of several days: each day is attributed on its own, so that runs of two days may have been given the same bytes
placed_io as (
    select
        * exclude (estimate_source),
        coalesce(estimate_source, case when confidence = 1 then 'counted' else 'attributed' end) as estimate_source
    from transforms.placed_io
),

-- a run has several series where it was traced several times
runs as (
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        any_value(application_id) as application_id,
        filesystem,
        direction,
        minute_at,
        estimate_source,
        any_value(confidence) as confidence,
        sum(attributed_bytes order by attributed_bytes) as attributed_bytes,
        sum(attributed_low_bytes order by attributed_low_bytes) as attributed_low_bytes,
        sum(attributed_high_bytes order by attributed_high_bytes) as attributed_high_bytes
    from placed_io
    group by all
),

minutes as (
    select
        filesystem,
        direction,
        minute_at,
        sum(attributed_bytes order by attributed_bytes) filter (estimate_source <> 'attributed') as known_bytes
    from runs
    group by all
),

-- what attribution may assign: the polls' bytes, less those that counters and traces explain
rooms as (
    select
        minutes.filesystem,
        minutes.direction,
        minutes.minute_at,
        greatest(0, coalesce(polled_minutes.measured_bytes, 0) - coalesce(minutes.known_bytes, 0)) as room_bytes
    from minutes
    left join polled_minutes using (filesystem, direction, minute_at)
),

days as (
    select
        filesystem,
        direction,
        minute_at,
        ended_on,
        sum(attributed_bytes order by attributed_bytes) as wanted_bytes
    from runs
    where estimate_source = 'attributed'
    group by all
),

-- days take their bytes in order, so that a later night does not change what an earlier one has published
before as (
    select
        days.*,
        rooms.room_bytes,
        coalesce(
            sum(days.wanted_bytes) over (
                partition by days.filesystem, days.direction, days.minute_at
                order by days.ended_on
                rows between unbounded preceding and 1 preceding
            ),
            0
        ) as earlier_bytes
    from days
    inner join rooms using (filesystem, direction, minute_at)
),

-- sums of reals differ in their last bits
limits as (
    select
        filesystem,
        direction,
        minute_at,
        ended_on,
        case
            when earlier_bytes + wanted_bytes <= room_bytes * (1 + 1e-9) + 1e-3 then 1
            else greatest(0, least(1, (room_bytes - earlier_bytes) / wanted_bytes))
        end as kept_ratio
    from before
),

limited as (
    select
        runs.*,
        case when runs.estimate_source = 'attributed' then limits.kept_ratio else 1 end as kept_ratio
    from runs
    left join limits using (filesystem, direction, minute_at, ended_on)
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    application_id,
    filesystem,
    direction,
    minute_at,
    attributed_bytes * kept_ratio as attributed_bytes,
    attributed_low_bytes * kept_ratio as attributed_low_bytes,
    attributed_high_bytes,
    confidence,
    estimate_source
from limited
where list_contains($days::date[], ended_on) and kept_ratio > 0
order by cluster, job_id, started_at, filesystem, direction, minute_at
