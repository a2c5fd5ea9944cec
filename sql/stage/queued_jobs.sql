-- stage.queued_jobs: one row per running or waiting job and time of a query to the scheduler
with

records as (
    select * from landed.queue_records
),

filesystem_aliases as (
    select * from settings.filesystem_aliases
),

of_days as (
    select
        (observed_at at time zone 'UTC')::date as observed_on,
        coalesce(cluster, 'default') as cluster,
        coalesce(nullif(regexp_extract(job_name, $application_pattern, 1), ''), job_name) as application,
        nullif(regexp_extract(comment, $filesystem_pattern, 1), '') as site_filesystem,
        * exclude (cluster)
    from records
    where list_contains($days::date[], (observed_at at time zone 'UTC')::date)
),

-- of two answers of one instant the one that landed last
known as (
    select *
    from of_days
    qualify row_number() over (partition by cluster, job_id, observed_at order by part_order desc, line desc) = 1
)

select
    known.observed_on,
    known.observed_at,
    known.cluster,
    known.job_id,
    known.user,
    known.account,
    known.application,
    known.partition,
    coalesce(filesystem_aliases.filesystem, known.site_filesystem) as filesystem,
    known.node_count,
    known.submitted_at,
    known.eligible_at,
    known.started_at,
    known.expected_start_at,
    known.time_limit_s,
    known.queue_state,
    known.wait_reason,
    known.run_count
from known
left join filesystem_aliases on known.site_filesystem = filesystem_aliases.name
order by known.observed_at, known.cluster, known.job_id
