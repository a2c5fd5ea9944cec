-- samples.metadata_io: one row per application run, file system, target and metadata operation that servers counted
with

exact_runs as (
    select * from samples.exact_runs
),

-- whose an interval is
run_rises as (
    select * from samples.run_rises
    where is_owner
),

names as (
    select distinct
        filesystem,
        job_key,
        scheduler_id
    from stage.counted_jobs
),

keys as (
    select
        *,
        count(*) over (partition by filesystem, scheduler_id) > 1 as is_of_several
    from names
),

of_jobs as (
    select
        counter_rises.*,
        case component when 'server' then 1 when 'client' then 2 else 0 end as side
    from stage.counter_rises
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

counter_rises as (
    select of_jobs.*
    from of_jobs
    inner join sides using (filesystem, side)
    where of_jobs.component <> 'ost'
),

each_operation as (
    select
        run_rises.cluster,
        run_rises.job_id,
        run_rises.started_at,
        run_rises.filesystem,
        keys.is_of_several,
        run_rises.until_at,
        epoch_us(run_rises.until_at) - epoch_us(run_rises.from_at) as length_us,
        counter_rises.target,
        unnest([
            'open',
            'close',
            'mknod',
            'link',
            'unlink',
            'mkdir',
            'rmdir',
            'rename',
            'readdir',
            'getattr',
            'setattr',
            'getxattr',
            'setxattr',
            'statfs',
            'sync',
            'punch',
            'create',
            'destroy',
            'other'
        ]) as server_operation,
        unnest([
            counter_rises.open_count,
            counter_rises.close_count,
            counter_rises.mknod_count,
            counter_rises.link_count,
            counter_rises.unlink_count,
            counter_rises.mkdir_count,
            counter_rises.rmdir_count,
            counter_rises.rename_count,
            counter_rises.readdir_count,
            counter_rises.getattr_count,
            counter_rises.setattr_count,
            counter_rises.getxattr_count,
            counter_rises.setxattr_count,
            counter_rises.statfs_count,
            counter_rises.sync_count,
            counter_rises.punch_count,
            counter_rises.create_count,
            counter_rises.destroy_count,
            counter_rises.other_count
        ]) as rise_count
    from counter_rises
    inner join keys using (filesystem, job_key)
    inner join run_rises
        on keys.filesystem = run_rises.filesystem
        and keys.scheduler_id = run_rises.scheduler_id
        and coalesce(counter_rises.from_at, counter_rises.until_at) = run_rises.from_at
        and counter_rises.until_at = run_rises.until_at
),

-- what the names of a job did in one interval adds up; of a single one no interval needs to be held apart
rises as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        target,
        server_operation,
        is_of_several,
        case when is_of_several then until_at end as shared_until_at,
        case when is_of_several then length_us end as shared_length_us,
        sum(rise_count) as rise_count,
        max(rise_count / nullif(length_us, 0)) as highest_per_us
    from each_operation
    where rise_count > 0
    group by all
),

known as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        target,
        server_operation,
        sum(rise_count)::bigint as metadata_operation_count,
        max(case when is_of_several then rise_count / nullif(shared_length_us, 0) else highest_per_us end) * 1e6
            as highest_per_s
    from rises
    group by all
),

timed as (
    select
        exact_runs.ended_on,
        exact_runs.outcome,
        known.*,
        known.metadata_operation_count
        / (exact_runs.step_count * exact_runs.interval_s) as mean_operations_per_s
    from known
    inner join exact_runs using (cluster, job_id, started_at, filesystem)
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    target,
    server_operation,
    outcome,
    metadata_operation_count,
    mean_operations_per_s,
    greatest(highest_per_s, mean_operations_per_s) as peak_operations_per_s
from timed
order by ended_on, cluster, job_id, started_at, filesystem, target, server_operation
