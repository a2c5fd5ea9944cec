-- stage.jobs: one row per run of a job, array task or step
with

records as (
    select * from landed.job_records
),

filesystem_aliases as (
    select * from settings.filesystem_aliases
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
        arg_max(submitted_at, (part_order, line)) as parent_submitted_at
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

named as (
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
        coalesce(started.submitted_at, parents.parent_submitted_at) as submitted_at,
        started.started_at,
        started.ended_at,
        started.state,
        started.source_file,
        started.line
    from started
    left join parents using (cluster, parent_job_id)
    left join numbered_steps on started.cluster = numbered_steps.cluster and started.job_id = numbered_steps.job_id
)

select
    (named.ended_at at time zone 'UTC')::date as ended_on,
    named.cluster,
    named.job_id,
    named.parent_job_id,
    named.job_kind,
    named.started_at is not null
    and (named.job_kind = 'step' or (named.job_kind in ('allocation', 'array_task') and not named.has_steps))
        as is_application_run,
    named.user,
    named.account,
    named.application,
    named.partition,
    coalesce(filesystem_aliases.filesystem, named.site_filesystem) as filesystem,
    named.node_count,
    named.task_count,
    named.submitted_at,
    named.started_at,
    named.ended_at,
    named.state,
    case
        when named.ended_at >= named.started_at
            then (epoch_us(named.ended_at) - epoch_us(named.started_at)) / 1e6
    end as duration_s,
    named.source_file,
    named.line
from named
left join filesystem_aliases on named.site_filesystem = filesystem_aliases.name
where
    list_contains($days::date[], (named.ended_at at time zone 'UTC')::date)
    or ($has_undated and named.ended_at is null)
order by ended_on, named.started_at, named.cluster, named.job_id
