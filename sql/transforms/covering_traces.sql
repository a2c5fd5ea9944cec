-- transforms.covering_traces: one row per run, file system and direction that one trace covers, on its only file system
with

client_io as (
    select * from samples.client_io
    where filesystem is not null
),

trace_jobs as (
    select
        trace_id,
        duration_s as traced_s
    from stage.trace_jobs
),

inference_runs as (
    select * from transforms.inference_runs
    where metric = 'bytes'
),

counted as (
    select
        *,
        count(distinct filesystem) over (partition by trace_id) as filesystem_count,
        count(distinct trace_id) over (partition by cluster, job_id, started_at) as trace_count
    from client_io
)

-- a trace that lasts for less of its run is that of a part of it
select
    inference_runs.ended_on,
    inference_runs.cluster,
    inference_runs.job_id,
    inference_runs.started_at,
    inference_runs.filesystem,
    inference_runs.direction,
    counted.trace_id
from counted
inner join trace_jobs using (trace_id)
inner join inference_runs using (cluster, job_id, started_at, filesystem, direction)
where
    counted.filesystem_count = 1
    and counted.trace_count = 1
    and trace_jobs.traced_s >= 0.9 * inference_runs.duration_s
order by
    inference_runs.cluster,
    inference_runs.job_id,
    inference_runs.started_at,
    inference_runs.filesystem,
    inference_runs.direction
