-- stage.counter_job_totals: one row per file system, UTC day and job as its servers name it, with its totals
with

counter_deltas as (
    select * from stage.counter_deltas
    where job_key is not null
),

job_keys as (
    select * from stage.job_keys
),

counted as (
    select
        scraped_on,
        filesystem,
        job_key,
        min(coalesce(interval_started_at, interval_ended_at)) as interval_started_at,
        max(interval_ended_at) as interval_ended_at,
        count(flag) as unknown_delta_count,
        coalesce(sum(read_bytes), 0)::bigint as read_bytes,
        coalesce(sum(written_bytes), 0)::bigint as written_bytes,
        coalesce(sum(read_count), 0)::bigint as read_count,
        coalesce(sum(write_count), 0)::bigint as write_count,
        coalesce(sum(open_count), 0)::bigint as open_count,
        coalesce(sum(close_count), 0)::bigint as close_count,
        coalesce(sum(mknod_count), 0)::bigint as mknod_count,
        coalesce(sum(link_count), 0)::bigint as link_count,
        coalesce(sum(unlink_count), 0)::bigint as unlink_count,
        coalesce(sum(mkdir_count), 0)::bigint as mkdir_count,
        coalesce(sum(rmdir_count), 0)::bigint as rmdir_count,
        coalesce(sum(rename_count), 0)::bigint as rename_count,
        coalesce(sum(readdir_count), 0)::bigint as readdir_count,
        coalesce(sum(getattr_count), 0)::bigint as getattr_count,
        coalesce(sum(setattr_count), 0)::bigint as setattr_count,
        coalesce(sum(getxattr_count), 0)::bigint as getxattr_count,
        coalesce(sum(setxattr_count), 0)::bigint as setxattr_count,
        coalesce(sum(statfs_count), 0)::bigint as statfs_count,
        coalesce(sum(sync_count), 0)::bigint as sync_count,
        coalesce(sum(punch_count), 0)::bigint as punch_count,
        coalesce(sum(create_count), 0)::bigint as create_count,
        coalesce(sum(destroy_count), 0)::bigint as destroy_count,
        coalesce(sum(other_count), 0)::bigint as other_count
    from counter_deltas
    group by scraped_on, filesystem, job_key
)

select
    counted.scraped_on,
    counted.filesystem,
    counted.job_key,
    job_keys.key_kind,
    job_keys.scheduler_id,
    counted.interval_started_at,
    counted.interval_ended_at,
    counted.unknown_delta_count,
    counted.read_bytes,
    counted.written_bytes,
    counted.read_count,
    counted.write_count,
    counted.open_count,
    counted.close_count,
    counted.mknod_count,
    counted.link_count,
    counted.unlink_count,
    counted.mkdir_count,
    counted.rmdir_count,
    counted.rename_count,
    counted.readdir_count,
    counted.getattr_count,
    counted.setattr_count,
    counted.getxattr_count,
    counted.setxattr_count,
    counted.statfs_count,
    counted.sync_count,
    counted.punch_count,
    counted.create_count,
    counted.destroy_count,
    counted.other_count
from counted
inner join job_keys using (job_key)
order by counted.filesystem, counted.job_key, counted.scraped_on
