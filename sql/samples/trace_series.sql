-- samples.trace_series: one row per signal of a traced run that has a job and known times
with

trace_jobs as (
    select
        trace_id,
        cluster,
        job_id,
        job_started_at,
        started_at
    from stage.trace_jobs
    where job_started_at is not null and started_at is not null
),

-- counters that are spread evenly have no shape in time
trace_signals as (
    select * from samples.trace_signals
    where is_counted and basis <> 'interval'
)

select
    trace_jobs.cluster,
    trace_jobs.job_id,
    trace_jobs.job_started_at as started_at,
    trace_signals.direction,
    trace_signals.trace_id,
    trace_signals.module,
    trace_signals.is_async,
    trace_signals.basis,
    trace_jobs.started_at as grid_started_at,
    trace_signals.interval_s,
    trace_signals.step_count,
    trace_signals.signal_bytes_per_s
from trace_signals
inner join trace_jobs using (trace_id)
order by trace_jobs.cluster, trace_jobs.job_id, trace_jobs.started_at, trace_id, module, direction, is_async
