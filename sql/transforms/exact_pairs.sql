-- transforms.exact_pairs: one row per exact sample of a run, with the default signature of its application
with

exact_samples as (
    select * from samples.exact_samples
    where outcome = 'measured'
),

signatures as (
    select * from transforms.signatures
    where is_default and outcome = 'extracted'
),

sample_sets as (
    select * from samples.sample_sets
    where source in ('jobstats', 'client') and metric = 'bytes'
)

-- a signature rests on the samples of its set that are no outliers
select
    exact_samples.ended_on,
    exact_samples.cluster,
    exact_samples.job_id,
    exact_samples.started_at,
    exact_samples.application_id,
    exact_samples.filesystem,
    exact_samples.direction,
    signatures.metric,
    signatures.method,
    sample_sets.job_id is not null
    and not coalesce(list_contains(from_json(signatures.outlier_job_ids, '["varchar"]'), exact_samples.job_id), false)
        as is_training_run,
    signatures.volume_bytes,
    exact_samples.grid_started_at,
    exact_samples.interval_s,
    exact_samples.sample_bytes_per_s
from exact_samples
inner join signatures using (application_id, filesystem, direction)
left join sample_sets using (application_id, filesystem, direction, cluster, job_id, started_at)
order by
    exact_samples.cluster,
    exact_samples.job_id,
    exact_samples.started_at,
    exact_samples.filesystem,
    exact_samples.direction
