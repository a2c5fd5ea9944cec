-- stage.queued_jobs: one row per running or waiting job and time of a query to the scheduler
with

records as (
    select * from landed.queue_records
),

filesystem_aliases as (
    select * from settings.filesystem_aliases
),

cluster_machines as (
    select * from settings.cluster_machines
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
),

-- a machine has its own applications, under all names that its scheduler has
placed as (
    select
        known.*,
        coalesce(cluster_machines.machine, known.cluster) as machine,
        coalesce(filesystem_aliases.filesystem, known.site_filesystem) as filesystem
    from known
    left join cluster_machines on known.cluster = cluster_machines.cluster
    left join filesystem_aliases on known.site_filesystem = filesystem_aliases.name
)

select
    placed.observed_on,
    placed.observed_at,
    placed.cluster,
    placed.machine,
    placed.job_id,
    placed.user,
    placed.account,
    placed.application,
    make_application_id(placed.machine, placed.user, placed.application, placed.node_count) as application_id,
    placed.partition,
    placed.filesystem,
    placed.node_count,
    placed.submitted_at,
    placed.eligible_at,
    placed.started_at,
    placed.expected_start_at,
    placed.time_limit_s,
    placed.queue_state,
    placed.wait_reason,
    placed.run_count
from placed
order by placed.observed_at, placed.cluster, placed.job_id
