-- samples.kept_subjects: one row per application, file system, direction and metric with the base release's samples
with

sample_sets as (
    select * from samples.sample_sets
),

-- what an older release does not say was cut out of shared traffic
base_sets as (
    select * replace (coalesce(source, 'server') as source) from released.sample_sets
),

base_counts as (
    select
        application_id,
        filesystem,
        direction,
        metric,
        count(*) as base_count
    from base_sets
    group by application_id, filesystem, direction, metric
),

compared as (
    select
        sample_sets.application_id,
        sample_sets.filesystem,
        sample_sets.direction,
        sample_sets.metric,
        base_counts.base_count,
        base_sets.job_id is not null and not list_contains($days::date[], sample_sets.ended_on) as is_same
    from sample_sets
    inner join base_counts using (application_id, filesystem, direction, metric)
    left join base_sets using (application_id, filesystem, direction, metric, cluster, job_id, started_at, source)
)

select
    application_id,
    filesystem,
    direction,
    metric
from compared
group by application_id, filesystem, direction, metric
having bool_and(is_same) and count(*) = max(base_count)
order by application_id, filesystem, direction, metric
