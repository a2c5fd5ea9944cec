-- samples.joint_subjects: one row per application, file system and direction with a joint signature
with

sample_sets as (
    select * from samples.sample_sets
    where metric = 'bytes'
),

known as (
    select * from released.signatures
    where method = 'joint'
),

latest as (
    select
        application_id,
        filesystem,
        direction,
        min(started_at) as first_run_started_at,
        count(*) as sample_count,
        max(started_at + to_microseconds(round_even(duration_s * 1e6, 0)::bigint)) as last_run_ended_at
    from sample_sets
    where not suffix(application_id, '/*')
    group by application_id, filesystem, direction
    having
        bool_and(coalesce(source, 'server') = 'server')
        and count(*) >= $min_sample_count
        and max(duration_s) <= $max_duration_s
),

-- subjects with runs since the last fit, among the latest subjects that are fitted jointly
changed as (
    select latest.*
    from latest
    left join known using (application_id, filesystem, direction)
    where
        known.first_run_started_at is distinct from latest.first_run_started_at
        or known.last_run_ended_at is distinct from latest.last_run_ended_at
        or known.sample_count is distinct from latest.sample_count
)

select
    application_id,
    filesystem,
    direction,
    'bytes' as metric
from changed
qualify
    row_number() over (partition by filesystem, direction order by last_run_ended_at desc, application_id)
    <= $max_application_count
order by application_id, filesystem, direction
