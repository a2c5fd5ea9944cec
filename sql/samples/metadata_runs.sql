-- samples.metadata_runs: one row per run and file system with counters of metadata operations by job
with

exact_runs as (
    select * from samples.exact_runs
),

run_counter_deltas as (
    select * from samples.run_counter_deltas
    where metadata_operation_count is not null
),

jobs as (
    select
        cluster,
        job_id,
        started_at,
        node_count
    from stage.jobs
),

-- without an operation of any run of a machine, it is unknown whether its runs had operations
known as (
    select distinct
        cluster,
        filesystem
    from run_counter_deltas
),

sums as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        sum(metadata_operation_count)::bigint as metadata_operation_count
    from run_counter_deltas
    group by cluster, job_id, started_at, filesystem
)

select
    exact_runs.ended_on,
    exact_runs.application_id,
    exact_runs.cluster,
    exact_runs.job_id,
    exact_runs.started_at,
    exact_runs.ended_at,
    exact_runs.filesystem,
    exact_runs.interval_s,
    exact_runs.step_us,
    exact_runs.phase_us,
    exact_runs.first_step,
    exact_runs.last_step,
    exact_runs.grid_started_at,
    exact_runs.step_count,
    exact_runs.coverage_started_at,
    exact_runs.coverage_ended_at,
    exact_runs.outcome,
    coalesce(sums.metadata_operation_count, 0) as metadata_operation_count,
    jobs.node_count
from exact_runs
semi join known using (cluster, filesystem)
left join sums using (cluster, job_id, started_at, filesystem)
left join jobs using (cluster, job_id, started_at)
order by exact_runs.cluster, exact_runs.job_id, exact_runs.started_at, exact_runs.filesystem
