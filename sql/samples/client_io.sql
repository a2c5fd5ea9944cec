-- samples.client_io: one row per traced run, file system and direction
with

trace_jobs as (
    select * from stage.trace_jobs
),

trace_counters as (
    select * from stage.trace_counters
    where is_counted
),

trace_records as (
    select * from landed.trace_records
),

trace_files as (
    select * from landed.trace_files
),

trace_signals as (
    select * from samples.trace_signals
),

filesystem_aliases as (
    select * from settings.filesystem_aliases
),

-- bytes of which the trace does not say which way they went are neither reads nor writes
unstated as (
    select
        trace_id,
        sum(volume_bytes) as moved_bytes
    from trace_signals
    where is_counted and direction = 'unstated'
    group by trace_id
),

of_files as (
    select
        trace_records.trace_id,
        coalesce(filesystem_aliases.filesystem, trace_files.mount) as filesystem,
        -- NULL if the trace has requests of unknown size
        coalesce(trace_records.read_bytes, case when coalesce(trace_records.read_count, 0) = 0 then 0 end)
            as read_bytes,
        coalesce(trace_records.written_bytes, case when coalesce(trace_records.write_count, 0) = 0 then 0 end)
            as written_bytes
    from trace_records
    semi join trace_counters using (trace_id, module)
    left join trace_files using (trace_id, file_number)
    left join filesystem_aliases on trace_files.mount = filesystem_aliases.name
),

-- totals of the module, if the tracer does not distinguish files
of_modules as (
    select
        trace_id,
        null::varchar as filesystem,
        coalesce(read_bytes, case when coalesce(read_count, 0) = 0 then 0 end) as read_bytes,
        coalesce(written_bytes, case when coalesce(write_count, 0) = 0 then 0 end) as written_bytes
    from trace_counters
    anti join trace_records using (trace_id, module)
    anti join unstated using (trace_id)
),

volumes as (
    select * from of_files
    union all
    select * from of_modules
),

-- a file system without bytes of the run is left out; a run without any bytes is kept
used as (
    select
        trace_id,
        coalesce(read_bytes, 1) + coalesce(written_bytes, 1) > 0 as is_used,
        case when is_used then filesystem end as filesystem,
        read_bytes,
        written_bytes,
        bool_or(is_used) over (partition by trace_id) as is_any_used
    from volumes
),

totals as (
    select
        trace_id,
        filesystem,
        case when count(*) = count(read_bytes) then sum(read_bytes) end::bigint as read_bytes,
        case when count(*) = count(written_bytes) then sum(written_bytes) end::bigint as written_bytes
    from used
    where is_used or not is_any_used
    group by trace_id, filesystem
),

directed as (
    select
        trace_id,
        filesystem,
        count(*) over (partition by trace_id) as filesystem_count,
        unnest(['read', 'write']) as direction,
        unnest([read_bytes, written_bytes]) as moved_bytes
    from totals
    union all
    select
        trace_id,
        null::varchar as filesystem,
        1 as filesystem_count,
        'unstated' as direction,
        moved_bytes
    from unstated
),

peaks as (
    select
        trace_id,
        direction,
        max(peak_bytes_per_s) as peak_bytes_per_s
    from trace_signals
    where is_counted and basis <> 'interval'
    group by trace_id, direction
),

measured as (
    select
        directed.*,
        trace_jobs.ended_on,
        coalesce(trace_jobs.cluster, 'default') as cluster,
        coalesce(trace_jobs.job_id, trace_jobs.traced_job_id, directed.trace_id) as job_id,
        coalesce(trace_jobs.job_started_at, trace_jobs.started_at) as started_at,
        directed.moved_bytes / nullif(trace_jobs.duration_s, 0) as mean_bytes_per_s,
        -- the signal of a module does not distinguish file systems
        case when directed.filesystem_count = 1 then peaks.peak_bytes_per_s end as peak_bytes_per_s
    from directed
    inner join trace_jobs using (trace_id)
    left join peaks using (trace_id, direction)
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    trace_id,
    moved_bytes::double as volume_bytes,
    mean_bytes_per_s,
    case
        when peak_bytes_per_s is not null and moved_bytes is not null then greatest(peak_bytes_per_s, mean_bytes_per_s)
    end as peak_bytes_per_s
from measured
order by ended_on, trace_id, filesystem, direction
