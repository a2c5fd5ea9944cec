-- stage.trace_counters: one row per traced run and module
with

trace_modules as (
    select * from landed.trace_modules
),

trace_records as (
    select * from landed.trace_records
),

trace_requests as (
    select * from landed.trace_requests
),

trace_heatmaps as (
    select * from landed.trace_heatmaps
),

trace_jobs as (
    select * from stage.trace_jobs
),

counted as (
    select
        trace_id,
        module,
        count(distinct file_number) as file_count,
        -- a single request of unknown size makes the sum unknown
        case
            when bool_and(read_bytes is not null or coalesce(read_count, 0) = 0) then sum(read_bytes)
        end::bigint as read_bytes,
        case
            when bool_and(written_bytes is not null or coalesce(write_count, 0) = 0) then sum(written_bytes)
        end::bigint as written_bytes,
        sum(open_count)::bigint as open_count,
        sum(collective_open_count)::bigint as collective_open_count,
        sum(read_count)::bigint as read_count,
        sum(write_count)::bigint as write_count,
        sum(seek_count)::bigint as seek_count,
        sum(stat_count)::bigint as stat_count,
        sum(sync_count)::bigint as sync_count,
        min(open_start_s) as open_start_s,
        max(open_end_s) as open_end_s,
        min(read_start_s) as read_start_s,
        max(read_end_s) as read_end_s,
        min(write_start_s) as write_start_s,
        max(write_end_s) as write_end_s,
        max(close_end_s) as close_end_s,
        sum(read_time_s order by file_number, rank) as read_time_s,
        sum(write_time_s order by file_number, rank) as write_time_s,
        sum(metadata_time_s order by file_number, rank) as metadata_time_s
    from trace_records
    group by trace_id, module
),

-- the single requests, in the module that holds them
requested as (
    select
        trace_requests.trace_id,
        trace_jobs.tracer,
        trace_requests.module,
        bool_and(trace_requests.request_bytes is not null) as is_known,
        case when is_known then sum(trace_requests.request_bytes) filter (trace_requests.direction = 'read') end
            as read_bytes,
        case when is_known then sum(trace_requests.request_bytes) filter (trace_requests.direction = 'write') end
            as written_bytes,
        count(*) filter (trace_requests.direction = 'read') as read_count,
        count(*) filter (trace_requests.direction = 'write') as write_count,
        min(trace_requests.start_s) filter (trace_requests.direction = 'read') as read_start_s,
        max(trace_requests.end_s) filter (trace_requests.direction = 'read') as read_end_s,
        min(trace_requests.start_s) filter (trace_requests.direction = 'write') as write_start_s,
        max(trace_requests.end_s) filter (trace_requests.direction = 'write') as write_end_s
    from trace_requests
    inner join trace_jobs using (trace_id)
    where not trace_requests.is_nested
    group by trace_requests.trace_id, trace_jobs.tracer, trace_requests.module
),

mapped as (
    select
        trace_id,
        module,
        sum(list_sum(bin_bytes))::bigint as mapped_bytes
    from trace_heatmaps
    group by trace_id, module
),

-- totals of heat maps, next to the counters of the same modules
covered_by_heatmap as (
    select
        mapped.trace_id,
        sum(mapped.mapped_bytes) / nullif(sum(counted.read_bytes + counted.written_bytes), 0) as covered_ratio
    from mapped
    inner join counted using (trace_id, module)
    group by mapped.trace_id
),

known as (
    select
        trace_modules.*,
        trace_jobs.cluster,
        trace_jobs.job_id,
        trace_jobs.tracer,
        trace_modules.outcome in ('sound', 'partial') as is_readable,
        counted.file_count,
        -- a tracer of requests alone counts nothing: its requests do
        coalesce(counted.read_bytes, try_cast(round(requested.read_bytes) as bigint)) as read_bytes,
        coalesce(counted.written_bytes, try_cast(round(requested.written_bytes) as bigint)) as written_bytes,
        coalesce(counted.read_count, requested.read_count) as read_count,
        coalesce(counted.write_count, requested.write_count) as write_count,
        coalesce(counted.read_start_s, requested.read_start_s) as read_start_s,
        coalesce(counted.read_end_s, requested.read_end_s) as read_end_s,
        coalesce(counted.write_start_s, requested.write_start_s) as write_start_s,
        coalesce(counted.write_end_s, requested.write_end_s) as write_end_s,
        counted.open_count,
        counted.collective_open_count,
        counted.seek_count,
        counted.stat_count,
        counted.sync_count,
        counted.open_start_s,
        counted.open_end_s,
        counted.close_end_s,
        counted.read_time_s,
        counted.write_time_s,
        counted.metadata_time_s
    from trace_modules
    inner join trace_jobs using (trace_id)
    left join counted using (trace_id, module)
    -- Darshan has its single requests in modules of their own: DXT_POSIX has those of POSIX
    left join requested
        on trace_modules.trace_id = requested.trace_id
        and trace_modules.module = if(requested.tracer = 'darshan', 'DXT_' || requested.module, requested.module)
),

totals as (
    select
        trace_id,
        bool_or(module = 'DAOS' and is_readable) as has_daos,
        bool_or(module in ('POSIX', 'DFS', 'DAOS') and is_readable) as has_storage,
        bool_or(module in ('POSIX', 'DFS', 'DAOS') and outcome <> 'sound') as is_storage_partial,
        coalesce(sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) filter (
            module = 'POSIX' and is_readable
        ), 0) as posix_bytes,
        coalesce(sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) filter (
            module in ('DFS', 'DAOS') and is_readable
        ), 0) as object_bytes,
        coalesce(sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) filter (
            module = 'MPIIO' and outcome = 'sound'
        ), 0) as mpiio_bytes
    from known
    group by trace_id
),

-- MPI-IO hands its bytes on to POSIX or DAOS: it counts where these were not traced, or in part and less of them
chosen as (
    select
        *,
        not has_storage or (is_storage_partial and mpiio_bytes > posix_bytes + object_bytes) as is_mpiio_counted
    from totals
),

covered as (
    select
        known.trace_id,
        known.module,
        case
            when not known.is_readable then null
            when known.module = 'HEATMAP' then covered_by_heatmap.covered_ratio
            when starts_with(known.module, 'DXT_')
                then
                    (coalesce(known.read_bytes, 0) + coalesce(known.written_bytes, 0))
                    / nullif(counters.read_bytes + counters.written_bytes, 0)
            when known.module = 'POSIX' and known.outcome = 'partial' and chosen.is_mpiio_counted
                then chosen.posix_bytes / nullif(chosen.mpiio_bytes, 0)
        end as ratio
    from known
    inner join chosen using (trace_id)
    left join counted as counters
        on known.trace_id = counters.trace_id
        and known.module = 'DXT_' || counters.module
    left join covered_by_heatmap on known.trace_id = covered_by_heatmap.trace_id
)

select
    known.ended_on,
    known.trace_id,
    known.cluster,
    known.job_id,
    known.source_file,
    known.module,
    known.outcome,
    known.reason,
    known.is_partial,
    case when covered.ratio > 1 then 1 else covered.ratio end as covered_ratio,
    known.is_readable
    and case
        when known.tracer <> 'darshan' then known.module in ('POSIX', 'MPIIO', 'STDIO', 'EVENTS')
        when known.module = 'STDIO' then true
        when known.module = 'MPIIO' then chosen.is_mpiio_counted
        when known.module in ('POSIX', 'DAOS') then not chosen.is_mpiio_counted
        when known.module = 'DFS' then not chosen.is_mpiio_counted and not chosen.has_daos
        else false
    end as is_counted,
    known.record_count,
    known.file_count,
    known.read_bytes,
    known.written_bytes,
    known.open_count,
    known.collective_open_count,
    known.read_count,
    known.write_count,
    known.seek_count,
    known.stat_count,
    known.sync_count,
    known.open_start_s,
    known.open_end_s,
    known.read_start_s,
    known.read_end_s,
    known.write_start_s,
    known.write_end_s,
    known.close_end_s,
    known.read_time_s,
    known.write_time_s,
    known.metadata_time_s,
    known.counters
from known
inner join chosen using (trace_id)
left join covered using (trace_id, module)
order by known.ended_on, known.trace_id, known.module
