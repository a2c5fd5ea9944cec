-- transforms.traced_applications: one row per traced run of an application that has a signature
with

trace_jobs as (
    select * from stage.trace_jobs
),

samples as (
    select * from samples.samples
),

signatures as (
    select * from transforms.signatures
),

runs as (
    select distinct
        cluster,
        job_id,
        started_at,
        application_id
    from samples
    semi join signatures using (application_id)
)

select
    trace_jobs.trace_id,
    runs.application_id
from trace_jobs
inner join runs
    on trace_jobs.cluster = runs.cluster
    and trace_jobs.job_id = runs.job_id
    and trace_jobs.job_started_at = runs.started_at
order by trace_jobs.trace_id
