-- samples.run_counter_deltas: one row per application run, file system and scrape interval with counter increases
with

runs as (
    select
        cluster,
        job_id,
        started_at,
        ended_at,
        ended_on,
        split_part(coalesce(parent_job_id, job_id), '.', 1) as scheduler_id
    from stage.jobs
    where is_application_run
),

-- the runs of the wanted days, and others of the same jobs
wanted as (
    select distinct scheduler_id
    from runs
    where list_contains($days::date[], ended_on)
),

keys as (
    select distinct
        filesystem,
        job_key,
        scheduler_id
    from stage.counter_job_totals
    semi join wanted using (scheduler_id)
),

counter_gaps as (
    select
        filesystem,
        component,
        target,
        flag,
        coalesce(interval_started_at, interval_ended_at) as interval_started_at,
        interval_ended_at
    from stage.counter_gaps
    where is_job_scrape
),

of_jobs as (
    select
        counter_deltas.*,
        case component when 'server' then 1 when 'client' then 2 else 0 end as side
    from stage.counter_deltas
    where job_key is not null
),

-- what targets, servers and clients say is each all of it
sides as (
    select
        filesystem,
        min(side) as side
    from of_jobs
    group by filesystem
),

known as (
    select
        of_jobs.filesystem,
        of_jobs.job_key,
        keys.scheduler_id,
        coalesce(of_jobs.interval_started_at, of_jobs.interval_ended_at) as interval_started_at,
        of_jobs.interval_ended_at,
        of_jobs.component,
        of_jobs.target,
        coalesce(of_jobs.read_bytes, 0) as read_bytes,
        coalesce(of_jobs.written_bytes, 0) as written_bytes,
        -- servers of data count what the work on metadata comes to there
        case
            when of_jobs.component <> 'ost'
                then list_sum([
                        of_jobs.open_count,
                        of_jobs.close_count,
                        of_jobs.mknod_count,
                        of_jobs.link_count,
                        of_jobs.unlink_count,
                        of_jobs.mkdir_count,
                        of_jobs.rmdir_count,
                        of_jobs.rename_count,
                        of_jobs.readdir_count,
                        of_jobs.getattr_count,
                        of_jobs.setattr_count,
                        of_jobs.getxattr_count,
                        of_jobs.setxattr_count,
                        of_jobs.statfs_count,
                        of_jobs.sync_count,
                        of_jobs.punch_count,
                        of_jobs.create_count,
                        of_jobs.destroy_count,
                        of_jobs.other_count
                    ])
        end as metadata_operation_count,
        of_jobs.flag is null as is_sure
    from of_jobs
    inner join sides using (filesystem, side)
    inner join keys using (filesystem, job_key)
),

used as (
    select distinct
        filesystem,
        component,
        target,
        job_key,
        scheduler_id
    from known
),

-- a counter that was reset has lost the bytes moved just before, and so may have one that was not read for
-- too long; an entry that later proves to be the same one has not
lost as (
    select distinct
        used.filesystem,
        used.scheduler_id,
        counter_gaps.interval_started_at,
        counter_gaps.interval_ended_at,
        0 as read_bytes,
        0 as written_bytes,
        null::bigint as metadata_operation_count,
        false as is_sure
    from used
    inner join counter_gaps using (filesystem, component, target)
    left join known
        on used.filesystem = known.filesystem
        and used.component = known.component
        and used.target = known.target
        and used.job_key = known.job_key
        and counter_gaps.interval_ended_at = known.interval_ended_at
        and known.is_sure
    where counter_gaps.flag = 'restarted' or known.filesystem is null
),

parts as (
    select * exclude (component, target, job_key) from known
    union all by name
    select * from lost
),

rises as (
    select
        filesystem,
        scheduler_id,
        interval_started_at,
        interval_ended_at,
        sum(read_bytes)::bigint as read_bytes,
        sum(written_bytes)::bigint as written_bytes,
        sum(metadata_operation_count)::bigint as metadata_operation_count,
        bool_and(is_sure) as is_sure
    from parts
    group by all
),

-- a rise is of the run that was there for the most of it; what comes late is of the one that ended last
near as (
    select
        runs.ended_on,
        runs.cluster,
        runs.job_id,
        runs.started_at,
        rises.*,
        epoch_us(least(rises.interval_ended_at, coalesce(runs.ended_at, rises.interval_ended_at)))
        - epoch_us(greatest(rises.interval_started_at, runs.started_at)) as common_us
    from rises
    inner join runs
        on rises.scheduler_id = runs.scheduler_id
        and rises.interval_ended_at > runs.started_at
        and (runs.ended_at is null or rises.interval_started_at < runs.ended_at + to_seconds($grace_s))
),

-- where job ids of several machines meet on a file system, one of which no job is known there alone is none of its own
alone as (
    select
        filesystem,
        min(cluster) as cluster
    from near
    group by filesystem, scheduler_id, interval_started_at, interval_ended_at
    having count(distinct cluster) = 1
),

machines as (
    select distinct * from alone
),

possible as (
    select near.*
    from near
    left join machines using (filesystem, cluster)
    qualify
        machines.cluster is not null
        or not bool_or(machines.cluster is not null) over (
            partition by near.filesystem, near.scheduler_id, near.interval_started_at, near.interval_ended_at
        )
),

ranked as (
    select
        *,
        row_number() over (
            partition by filesystem, scheduler_id, interval_started_at, interval_ended_at
            order by common_us desc, started_at, cluster, job_id
        ) = 1 as is_owner,
        count(*) filter (where common_us > 0) over (
            partition by filesystem, scheduler_id, interval_started_at, interval_ended_at
        ) as run_count
    from possible
)

-- another run that was there has nothing of it, and may lack something
select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    scheduler_id,
    interval_started_at,
    interval_ended_at,
    case when is_owner then read_bytes else 0 end as read_bytes,
    case when is_owner then written_bytes else 0 end as written_bytes,
    case when is_owner then metadata_operation_count end as metadata_operation_count,
    is_owner,
    is_sure,
    run_count < 2 as is_alone
from ranked
where (is_owner or common_us > 0) and list_contains($days::date[], ended_on)
order by cluster, job_id, started_at, filesystem, interval_started_at, interval_ended_at
