-- stage.jobs: one row per run of a job, array task or step
with

records as (
    select * from landed.job_records
),

filesystem_aliases as (
    select * from settings.filesystem_aliases
),

cluster_machines as (
    select * from settings.cluster_machines
),

-- the latest word on each run: an end beats none, then what was landed last
known as (
    select
        coalesce(cluster, 'default') as cluster,
        job_id,
        nullif(regexp_extract(job_id, '^(.+)\.(\d+|batch|extern|interactive)(\+\d+)?$', 1), '') as parent_job_id,
        * exclude (cluster, job_id)
    from records
    qualify
        row_number() over (
            partition by coalesce(cluster, 'default'), job_id, started_at
            order by ended_at is null, part_order desc, line desc
        ) = 1
),

-- a pending record says nothing more once the run has started
started as (
    select *
    from known
    qualify started_at is not null or count(started_at) over (partition by cluster, job_id) = 0
),

parents as (
    select
        cluster,
        job_id as parent_job_id,
        arg_max(user, (part_order, line)) as parent_user,
        arg_max(account, (part_order, line)) as parent_account,
        arg_max(partition, (part_order, line)) as parent_partition,
        arg_max(comment, (part_order, line)) as parent_comment,
        arg_max(submitted_at, (part_order, line)) as parent_submitted_at,
        arg_max(has_shared_nodes, (part_order, line)) as parent_has_shared_nodes
    from known
    where parent_job_id is null
    group by all
),

numbered_steps as (
    select distinct
        cluster,
        parent_job_id as job_id
    from known
    where regexp_matches(job_id, '\.\d+(\+\d+)?$') and parent_job_id is not null
),

described as (
    select
        started.cluster,
        started.job_id,
        started.parent_job_id,
        case
            when started.parent_job_id is not null and regexp_matches(started.job_id, '\.\d+(\+\d+)?$') then 'step'
            when started.parent_job_id is not null then 'system_step'
            when regexp_matches(started.job_id, '^\d+(_\d+|\[\d+\].*)$') then 'array_task'
            else 'allocation'
        end as job_kind,
        numbered_steps.job_id is not null as has_steps,
        coalesce(started.user, parents.parent_user) as user,
        coalesce(started.account, parents.parent_account) as account,
        coalesce(
            nullif(regexp_extract(started.job_name, $application_pattern, 1), ''), started.job_name
        ) as application,
        coalesce(started.partition, parents.parent_partition) as partition,
        nullif(
            regexp_extract(coalesce(started.comment, parents.parent_comment), $filesystem_pattern, 1), ''
        ) as site_filesystem,
        started.node_count,
        started.task_count,
        coalesce(
            started.has_shared_nodes,
            parents.parent_has_shared_nodes,
            case
                when len($shared_partitions::varchar[]) > 0
                    then
                        list_contains(
                            $shared_partitions::varchar[], coalesce(started.partition, parents.parent_partition)
                        )
            end
        ) as has_shared_nodes,
        coalesce(started.submitted_at, parents.parent_submitted_at) as submitted_at,
        started.started_at,
        started.ended_at,
        started.state,
        started.source_file,
        started.line
    from started
    left join parents using (cluster, parent_job_id)
    left join numbered_steps on started.cluster = numbered_steps.cluster and started.job_id = numbered_steps.job_id
),

-- a machine has its own applications, under all names that its scheduler has
placed as (
    select
        described.*,
        coalesce(cluster_machines.machine, described.cluster) as machine,
        coalesce(filesystem_aliases.filesystem, described.site_filesystem) as filesystem
    from described
    left join cluster_machines on described.cluster = cluster_machines.cluster
    left join filesystem_aliases on described.site_filesystem = filesystem_aliases.name
)

select
    (placed.ended_at at time zone 'UTC')::date as ended_on,
    placed.cluster,
    placed.machine,
    placed.job_id,
    placed.parent_job_id,
    placed.job_kind,
    placed.started_at is not null
    -- the tasks of an array that never ran, as one record
    and not contains(placed.job_id, '_[')
    and (placed.job_kind = 'step' or (placed.job_kind in ('allocation', 'array_task') and not placed.has_steps))
        as is_application_run,
    placed.user,
    placed.account,
    placed.application,
    make_application_id(placed.machine, placed.user, placed.application, placed.node_count) as application_id,
    placed.partition,
    placed.filesystem,
    placed.node_count,
    placed.task_count,
    placed.has_shared_nodes,
    placed.submitted_at,
    placed.started_at,
    placed.ended_at,
    placed.state,
    case
        when placed.ended_at >= placed.started_at
            then (epoch_us(placed.ended_at) - epoch_us(placed.started_at)) / 1e6
    end as duration_s,
    placed.source_file,
    placed.line
from placed
where
    list_contains($days::date[], (placed.ended_at at time zone 'UTC')::date)
    or ($has_undated and placed.ended_at is null)
order by ended_on, placed.started_at, placed.cluster, placed.job_id
