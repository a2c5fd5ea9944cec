-- samples.best_job_io: one row per application run, file system and direction, from the source that knows best
with

job_io as (
    select * from samples.job_io
),

-- several traced programs of one run add up
known as (
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        source,
        case
            when count(*) = 1 then any_value(outcome)
            when count(volume_bytes) = count(*) then 'measured'
            else 'unknown_sizes'
        end as outcome,
        case when count(volume_bytes) = count(*) then sum(volume_bytes) end as volume_bytes,
        case when count(*) = 1 then any_value(mean_bytes_per_s) end as mean_bytes_per_s,
        case when count(*) = 1 then any_value(peak_bytes_per_s) end as peak_bytes_per_s
    from job_io
    group by all
),

-- what servers counted for the run is all of it; a tracer may have missed some; the traffic of all is nobody's own
ranked as (
    select
        *,
        source = 'server' as is_shared_traffic,
        case
            when source = 'jobstats' and outcome = 'measured' then 0
            when source = 'client' and outcome = 'measured' then 1
            when source = 'jobstats' then 2
            when source = 'server' and outcome = 'measured' then 3
            else 4
        end as rank
    from known
),

-- what is not told by file system, or by direction, servers may have counted
counted as (
    select distinct
        cluster,
        job_id,
        started_at
    from known
    where source = 'jobstats'
),

best as (
    select ranked.*
    from ranked
    left join counted using (cluster, job_id, started_at)
    where
        counted.cluster is null
        or (ranked.filesystem is not null and ranked.direction <> 'unstated')
    qualify
        row_number() over (
            partition by
                ranked.cluster, ranked.job_id, ranked.started_at, ranked.filesystem, ranked.direction
            order by ranked.rank, ranked.source
        ) = 1
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    source,
    is_shared_traffic,
    outcome,
    volume_bytes,
    mean_bytes_per_s,
    peak_bytes_per_s,
    case when not is_shared_traffic then volume_bytes end as own_bytes
from best
order by ended_on, cluster, job_id, started_at, filesystem, direction
