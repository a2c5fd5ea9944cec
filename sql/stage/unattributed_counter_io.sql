-- stage.unattributed_counter_io: one row per file system, UTC day and kind of job keys without a known job
with

counter_job_totals as (
    select * from stage.counter_job_totals
),

jobs as (
    select distinct
        split_part(coalesce(parent_job_id, job_id), '.', 1) as scheduler_id,
        started_at,
        ended_at
    from stage.jobs
    where is_application_run
),

assigned as (
    select distinct
        counter_job_totals.filesystem,
        counter_job_totals.scraped_on,
        counter_job_totals.job_key
    from counter_job_totals
    inner join jobs
        on counter_job_totals.scheduler_id = jobs.scheduler_id
        and counter_job_totals.interval_ended_at > jobs.started_at
        and (jobs.ended_at is null or counter_job_totals.interval_started_at < jobs.ended_at + to_seconds($grace_s))
)

select
    scraped_on,
    filesystem,
    key_kind,
    count(distinct job_key) as job_key_count,
    sum(read_bytes)::bigint as read_bytes,
    sum(written_bytes)::bigint as written_bytes,
    sum(read_count)::bigint as read_count,
    sum(write_count)::bigint as write_count,
    sum(open_count)::bigint as open_count,
    sum(close_count)::bigint as close_count,
    sum(mknod_count)::bigint as mknod_count,
    sum(link_count)::bigint as link_count,
    sum(unlink_count)::bigint as unlink_count,
    sum(mkdir_count)::bigint as mkdir_count,
    sum(rmdir_count)::bigint as rmdir_count,
    sum(rename_count)::bigint as rename_count,
    sum(readdir_count)::bigint as readdir_count,
    sum(getattr_count)::bigint as getattr_count,
    sum(setattr_count)::bigint as setattr_count,
    sum(getxattr_count)::bigint as getxattr_count,
    sum(setxattr_count)::bigint as setxattr_count,
    sum(statfs_count)::bigint as statfs_count,
    sum(sync_count)::bigint as sync_count,
    sum(punch_count)::bigint as punch_count,
    sum(create_count)::bigint as create_count,
    sum(destroy_count)::bigint as destroy_count,
    sum(other_count)::bigint as other_count
from counter_job_totals
anti join assigned using (filesystem, scraped_on, job_key)
group by all
order by scraped_on, filesystem, key_kind
