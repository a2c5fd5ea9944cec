-- samples.joint_subjects: one row per application, file system and direction whose signature is found with others
with

sample_sets as (
    select * from samples.sample_sets
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
        min(started_at) as first_at,
        count(*) as sample_count,
        max(started_at + to_microseconds(round_even(duration_s * 1e6, 0)::bigint)) as last_at
    from sample_sets
    where not suffix(application_id, '/*')
    group by application_id, filesystem, direction
    having
        bool_and(coalesce(source, 'server') = 'server')
        and count(*) >= $least_sample_count
        and max(duration_s) <= $longest_s
),

-- those with runs since the last time, of the latest so many as are found together
changed as (
    select latest.*
    from latest
    left join known using (application_id, filesystem, direction)
    where
        known.first_at is distinct from latest.first_at
        or known.last_at is distinct from latest.last_at
        or known.sample_count is distinct from latest.sample_count
)

select
    application_id,
    filesystem,
    direction
from changed
qualify
    row_number() over (partition by filesystem, direction order by last_at desc, application_id)
    <= $most_application_count
order by application_id, filesystem, direction
