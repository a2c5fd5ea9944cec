-- transforms.job_io: one row per run, file system and direction, with the best estimate of its bytes
with

job_io_sources as (
    select * from samples.job_io_sources
),

attributed_io as (
    select * from transforms.attributed_io
),

-- a trace may end on another day than its run: the row is of the run's day
run_days as (
    select distinct
        cluster,
        job_id,
        started_at,
        ended_on as run_ended_on
    from job_io_sources
    where source = 'server'
),

dated as (
    select
        job_io_sources.* exclude (ended_on),
        case when run_days.cluster is null then job_io_sources.ended_on else run_days.run_ended_on end as ended_on
    from job_io_sources
    left join run_days using (cluster, job_id, started_at)
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
            when count(own_bytes) = count(*) then 'measured'
            else 'unknown_sizes'
        end as outcome,
        any_value(filesystem_bytes) as filesystem_bytes,
        case when count(own_bytes) = count(*) then sum(own_bytes order by own_bytes) end as own_bytes,
        case when count(*) = 1 then any_value(peak_bytes_per_s) end as peak_bytes_per_s,
        any_value(missing_ratio) as missing_ratio,
        any_value(concurrent_job_count) as concurrent_job_count,
        any_value(metadata_operation_count) as metadata_operation_count
    from dated
    group by all
),

counted_runs as (
    select distinct
        cluster,
        job_id,
        started_at
    from known
    where source = 'jobstats'
),

-- counters hold all bytes of a run: rows without a file system or direction would repeat them
placed as (
    select
        known.*,
        max(known.metadata_operation_count) over (
            partition by known.cluster, known.job_id, known.started_at, known.filesystem, known.direction
        ) as operation_count
    from known
    left join counted_runs using (cluster, job_id, started_at)
    where counted_runs.cluster is null or (known.filesystem is not null and known.direction <> 'unstated')
),

polled as (
    select * from placed
    where source = 'server'
),

own as (
    select * from placed
    where source <> 'server'
),

-- complete counters first, then a trace with all sizes, which may lack what the tracer did not see
best_own as (
    select * from own
    qualify
        row_number() over (
            partition by cluster, job_id, started_at, filesystem, direction
            order by outcome <> 'measured', own_bytes is null, source <> 'jobstats'
        ) = 1
),

-- a trace has all bytes of its run: other file systems of the run, perhaps the same by another name, have none
traced_runs as (
    select distinct
        cluster,
        job_id,
        started_at,
        unnest(case when direction = 'unstated' then ['read', 'write'] else [direction] end) as direction
    from own
    where own_bytes is not null and source = 'client'
),

attributed as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        sum(attributed_bytes order by attributed_bytes) as attributed_bytes,
        sum(attributed_low_bytes order by attributed_low_bytes) as attributed_low_bytes,
        sum(attributed_high_bytes order by attributed_high_bytes) as attributed_high_bytes
    from attributed_io
    where estimate_source = 'attributed'
    group by all
),

places as (
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction
    from polled
    union
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction
    from best_own
),

joined as (
    select
        places.*,
        best_own.own_bytes,
        best_own.source as own_source,
        best_own.outcome as own_outcome,
        best_own.peak_bytes_per_s as own_peak_bytes_per_s,
        polled.filesystem_bytes,
        polled.peak_bytes_per_s as filesystem_peak_bytes_per_s,
        polled.missing_ratio,
        polled.concurrent_job_count,
        best_own.operation_count as metadata_operation_count,
        traced_runs.cluster is not null as is_in_other_row,
        attributed.attributed_bytes,
        attributed.attributed_low_bytes,
        attributed.attributed_high_bytes,
        case
            when best_own.own_bytes is not null and best_own.source = 'jobstats' then 'counted'
            when best_own.own_bytes is not null then 'traced'
            when attributed.attributed_bytes is not null and not is_in_other_row then 'attributed'
            else 'none'
        end as estimate_source
    from places
    left join best_own
        on places.cluster = best_own.cluster
        and places.job_id = best_own.job_id
        and places.started_at is not distinct from best_own.started_at
        and places.filesystem is not distinct from best_own.filesystem
        and places.direction = best_own.direction
    left join polled
        on places.cluster = polled.cluster
        and places.job_id = polled.job_id
        and places.started_at = polled.started_at
        and places.filesystem is not distinct from polled.filesystem
        and places.direction = polled.direction
    left join traced_runs
        on places.cluster = traced_runs.cluster
        and places.job_id = traced_runs.job_id
        and places.started_at = traced_runs.started_at
        and places.direction = traced_runs.direction
    left join attributed
        on places.cluster = attributed.cluster
        and places.job_id = attributed.job_id
        and places.started_at = attributed.started_at
        and places.filesystem = attributed.filesystem
        and places.direction = attributed.direction
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    case
        when estimate_source in ('counted', 'traced') then own_bytes
        when estimate_source = 'attributed' then attributed_bytes
    end as estimated_bytes,
    case
        when estimate_source = 'attributed' then attributed_low_bytes
        when own_outcome <> 'several_runs' then own_bytes
    end as estimated_low_bytes,
    case
        when estimate_source = 'attributed' then attributed_high_bytes
        when own_outcome = 'measured' then own_bytes
    end as estimated_high_bytes,
    estimate_source,
    case
        when estimate_source in ('counted', 'traced') then own_outcome
        when estimate_source = 'attributed' then 'attributed'
        when is_in_other_row then 'in_other_row'
        when own_outcome is not null then own_outcome
        when filesystem_bytes is not null then 'not_attributed'
        else 'no_polls'
    end as outcome,
    own_bytes,
    filesystem_bytes,
    own_bytes > filesystem_bytes as is_above_filesystem,
    own_peak_bytes_per_s,
    filesystem_peak_bytes_per_s,
    missing_ratio,
    concurrent_job_count,
    metadata_operation_count
from joined
order by ended_on, cluster, job_id, started_at, filesystem, direction
