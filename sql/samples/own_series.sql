-- samples.own_series: one row per run, file system, direction and series of the run's own bytes, counted or traced
with

exact_samples as (
    select * from samples.exact_samples
    where outcome = 'measured'
),

job_io_sources as (
    select * from samples.job_io_sources
    where source = 'client'
),

trace_jobs as (
    select
        trace_id,
        started_at as grid_started_at
    from stage.trace_jobs
    where job_started_at is not null and started_at is not null
),

trace_signals as (
    select * from samples.trace_signals
    where is_counted
),

-- counters that are spread evenly have no shape in time: the signature explains such runs better
timed as (
    select * from trace_signals
    qualify bool_and(basis <> 'interval') over (partition by trace_id, direction)
),

-- a signal covers all file systems of its trace, so a trace must have one
marked as (
    select
        *,
        filesystem is not null
        and direction <> 'unstated'
        and own_bytes is not null
        and count(distinct filesystem) over (partition by trace_id) = 1 as is_placed
    from job_io_sources
),

placed as (
    select * from marked
    qualify bool_and(is_placed) over (partition by cluster, job_id, started_at)
),

traced as (
    select
        placed.cluster,
        placed.job_id,
        placed.started_at,
        placed.filesystem,
        placed.direction,
        timed.trace_id,
        timed.module,
        timed.is_async,
        trace_jobs.grid_started_at,
        timed.signal_bytes_per_s as sample_bytes_per_s,
        timed.interval_s as counted_s
    from placed
    inner join trace_jobs using (trace_id)
    inner join timed using (trace_id, direction)
    anti join exact_samples
        on placed.cluster = exact_samples.cluster
        and placed.job_id = exact_samples.job_id
        and placed.started_at = exact_samples.started_at
        and placed.filesystem = exact_samples.filesystem
        and placed.direction = exact_samples.direction
)

select
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    null::varchar as trace_id,
    null::varchar as module,
    null::boolean as is_async,
    grid_started_at,
    sample_bytes_per_s,
    interval_s as counted_s,
    'counted' as estimate_source
from exact_samples
union all
select
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    trace_id,
    module,
    is_async,
    grid_started_at,
    sample_bytes_per_s,
    counted_s,
    'traced' as estimate_source
from traced
order by cluster, job_id, started_at, filesystem, direction, trace_id, module, is_async
