-- transforms.traced_pairs: one row per signature and traced run of its application
with

trace_jobs as (
    select * from stage.trace_jobs
),

samples as (
    select * from samples.samples
),

signatures as (
    select * from transforms.signatures
    where outcome = 'extracted' and metric = 'bytes'
),

sample_sets as (
    select * from samples.sample_sets
    where source in ('jobstats', 'client') and metric = 'bytes'
),

runs as (
    select distinct
        cluster,
        job_id,
        started_at,
        application_id
    from samples
)

-- a signature rests on the samples of its set that are no outliers
select
    trace_jobs.trace_id,
    signatures.application_id,
    signatures.filesystem,
    signatures.direction,
    signatures.metric,
    signatures.method,
    sample_sets.job_id is not null
    and not coalesce(list_contains(from_json(signatures.outlier_job_ids, '["varchar"]'), runs.job_id), false)
        as is_training_run
from trace_jobs
inner join runs
    on trace_jobs.cluster = runs.cluster
    and trace_jobs.job_id = runs.job_id
    and trace_jobs.job_started_at = runs.started_at
inner join signatures on runs.application_id = signatures.application_id
left join sample_sets
    on signatures.application_id = sample_sets.application_id
    and signatures.filesystem = sample_sets.filesystem
    and signatures.direction = sample_sets.direction
    and runs.cluster = sample_sets.cluster
    and runs.job_id = sample_sets.job_id
    and runs.started_at = sample_sets.started_at
order by
    trace_jobs.trace_id,
    signatures.application_id,
    signatures.filesystem,
    signatures.direction,
    signatures.method
