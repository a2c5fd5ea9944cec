-- samples.applications: one row per application of one user at one node count on one machine
with

jobs as (
    select * from stage.jobs
    where is_application_run and ended_at >= started_at
),

job_io_sources as (
    select * from samples.job_io_sources
    where outcome = 'measured' and source in ('server', 'jobstats')
),

-- the traces that sample sets accept
trace_samples as (
    select * from samples.trace_samples
    where $samples_from in ('exact', 'best', 'traced')
        and (outcome = 'measured' or (outcome = 'no_polls' and $samples_from = 'traced'))
),

measured as (
    select
        cluster,
        job_id,
        started_at
    from job_io_sources
    union
    select
        cluster,
        job_id,
        started_at
    from trace_samples
)

select
    jobs.application_id,
    jobs.machine,
    jobs.user,
    jobs.application,
    jobs.node_count,
    count(measured.job_id) as sample_count,
    min(jobs.started_at) as first_run_started_at,
    max(jobs.ended_at) as last_run_ended_at
from jobs
left join measured using (cluster, job_id, started_at)
where jobs.application_id is not null
group by all
order by jobs.application_id
