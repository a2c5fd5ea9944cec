-- transforms.inference_runs: one row per run of a day, file system, direction and metric, with its signature's result
with

samples as (
    select * from samples.samples
),

exact_samples as (
    select * from samples.exact_samples
),

jobs as (
    select
        cluster,
        job_id,
        started_at,
        duration_s,
        node_count
    from stage.jobs
),

signatures as (
    select * from transforms.signatures
    where is_default or metric = 'operations'
),

sample_sets as (
    select * from samples.sample_sets
    where source in ('jobstats', 'client')
),

attributed_io as (
    select * from transforms.attributed_io
),

-- those of applications have no day
periods as (
    select * from transforms.measured_periods
    where (is_default or metric = 'operations') and subject_kind = 'application'
),

-- the traffic was searched for the bytes of runs that have a sample of it; an idle run has no operations either
sampled as (
    select
        ended_on,
        application_id,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        metrics.metric,
        true as is_searched
    from samples
    cross join (values ('bytes'), ('operations')) as metrics (metric)
    where metrics.metric = 'bytes' or volume_operations is not null
    union all
    select
        ended_on,
        application_id,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        'bytes' as metric,
        false as is_searched
    from exact_samples
),

runs as (
    select
        min(ended_on) as ended_on,
        min(application_id) as application_id,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        metric,
        bool_or(is_searched) as is_searched
    from sampled
    group by cluster, job_id, started_at, filesystem, direction, metric
),

explained as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        sum(attributed_bytes order by minute_at, attributed_bytes) as attributed_bytes
    from attributed_io
    group by cluster, job_id, started_at, filesystem, direction
),

-- a signature of an idle application needs no expected_correlation
known as (
    select
        runs.*,
        jobs.duration_s,
        jobs.node_count,
        signatures.expected_correlation,
        signatures.duration_s as alone_s,
        max(signatures.volume_bytes) over (
            partition by runs.cluster, runs.job_id, runs.started_at, runs.filesystem, runs.direction
        ) as signature_bytes,
        coalesce(explained.attributed_bytes, 0) as attributed_bytes,
        case
            when coalesce(signatures.outcome, '') not in ('extracted', 'no_io') then 'no_signature'
            when
                signatures.outcome = 'extracted'
                and not coalesce(signatures.expected_correlation >= $min_expected_correlation::double, false)
                then 'unreliable_signature'
        end as refusal,
        sample_sets.job_id is not null
        and not coalesce(list_contains(from_json(signatures.outlier_job_ids, '["varchar"]'), runs.job_id), false)
            as is_training_run
    from runs
    left join jobs using (cluster, job_id, started_at)
    left join signatures using (application_id, filesystem, direction, metric)
    left join explained using (cluster, job_id, started_at, filesystem, direction)
    left join sample_sets using (application_id, filesystem, direction, metric, cluster, job_id, started_at)
)

select
    known.ended_on,
    known.application_id,
    known.cluster,
    known.job_id,
    known.started_at,
    known.filesystem,
    known.direction,
    known.metric,
    known.duration_s,
    known.node_count,
    known.expected_correlation,
    known.alone_s,
    known.signature_bytes,
    case when known.refusal is null and known.is_searched then known.attributed_bytes end as attributed_bytes,
    known.refusal,
    known.is_training_run,
    coalesce(known.refusal, periods.outcome, 'no_io') as outcome,
    periods.frequency_hz,
    periods.period_s,
    periods.period_error_s,
    periods.burst_width_s,
    periods.duty_ratio,
    periods.window_start_s,
    periods.window_end_s,
    periods.confidence,
    periods.false_alarm_probability
from known
left join periods
    on known.application_id = periods.subject_id
    and known.filesystem = periods.filesystem
    and known.direction = periods.direction
    and known.metric = periods.metric
order by known.cluster, known.job_id, known.started_at, known.filesystem, known.direction, known.metric
