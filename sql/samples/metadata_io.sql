-- samples.metadata_io: one row per application run, file system, target and metadata operation that servers counted
with

exact_runs as (
    select * from samples.exact_runs
),

-- owner of each interval
run_counter_deltas as (
    select * from samples.run_counter_deltas
    where is_owner
),

names as (
    select distinct
        filesystem,
        job_key,
        scheduler_id
    from stage.counter_job_totals
),

keys as (
    select
        *,
        count(*) over (partition by filesystem, scheduler_id) > 1 as is_of_several
    from names
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

counter_deltas as (
    select of_jobs.*
    from of_jobs
    inner join sides using (filesystem, side)
    where of_jobs.component <> 'ost'
),

each_operation as (
    select
        run_counter_deltas.cluster,
        run_counter_deltas.job_id,
        run_counter_deltas.started_at,
        run_counter_deltas.filesystem,
        keys.is_of_several,
        run_counter_deltas.interval_ended_at,
        epoch_us(run_counter_deltas.interval_ended_at) - epoch_us(run_counter_deltas.interval_started_at) as length_us,
        counter_deltas.target,
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
            counter_deltas.open_count,
            counter_deltas.close_count,
            counter_deltas.mknod_count,
            counter_deltas.link_count,
            counter_deltas.unlink_count,
            counter_deltas.mkdir_count,
            counter_deltas.rmdir_count,
            counter_deltas.rename_count,
            counter_deltas.readdir_count,
            counter_deltas.getattr_count,
            counter_deltas.setattr_count,
            counter_deltas.getxattr_count,
            counter_deltas.setxattr_count,
            counter_deltas.statfs_count,
            counter_deltas.sync_count,
            counter_deltas.punch_count,
            counter_deltas.create_count,
            counter_deltas.destroy_count,
            counter_deltas.other_count
        ]) as rise_count
    from counter_deltas
    inner join keys using (filesystem, job_key)
    inner join run_counter_deltas
        on keys.filesystem = run_counter_deltas.filesystem
        and keys.scheduler_id = run_counter_deltas.scheduler_id
        and coalesce(counter_deltas.interval_started_at, counter_deltas.interval_ended_at)
        = run_counter_deltas.interval_started_at
        and counter_deltas.interval_ended_at = run_counter_deltas.interval_ended_at
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
        case when is_of_several then interval_ended_at end as shared_until_at,
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
