-- stage.trace_jobs: one row per traced run, with the job to which it belongs
with

traces as (
    select * from landed.traces
),

jobs as (
    select * from stage.jobs
),

runs as (
    select
        *,
        started_at - to_seconds($clock_tolerance_s) as earliest_at,
        coalesce(ended_at, 'infinity'::timestamptz) + to_seconds($clock_tolerance_s) as latest_at
    from jobs
    where is_application_run
),

-- a step, an array task or a whole job; what a server's name follows is a number too
of_the_id as (
    select
        traces.trace_id,
        runs.*,
        'job_id' as job_match
    from traces
    inner join runs on traces.job_id = split_part(split_part(runs.job_id, '.', 1), '[', 1)
    where
        traces.started_at is null
        or (traces.started_at >= runs.earliest_at and traces.ended_at <= runs.latest_at)
),

-- where ids differ (a tracer without the scheduler's id writes a process number): the user's only run by then
of_the_user as (
    select
        traces.trace_id,
        runs.*,
        'time_and_user' as job_match
    from traces
    inner join runs
        on traces.started_at >= runs.earliest_at
        and traces.ended_at <= runs.latest_at
        and coalesce(traces.user, traces.uid::varchar) = runs.user
    anti join of_the_id on traces.trace_id = of_the_id.trace_id
),

candidates as (
    select * from of_the_id
    union all
    select * from of_the_user
),

-- several steps of a job run concurrently: only the number of processes may distinguish them
alike as (
    select
        candidates.*,
        coalesce(candidates.task_count = traces.process_count, false) as is_of_that_size,
        count(*) over (partition by candidates.trace_id) as candidate_count,
        count(*) filter (candidates.task_count = traces.process_count) over (
            partition by candidates.trace_id
        ) as fitting_count
    from candidates
    inner join traces using (trace_id)
),

matched as (
    select * from alike
    where candidate_count = 1 or (fitting_count = 1 and is_of_that_size)
),

ambiguous as (
    select distinct trace_id from alike
    anti join matched using (trace_id)
)

select
    traces.ended_on,
    traces.trace_id,
    traces.tracer,
    traces.tracer_version,
    traces.source_file,
    case
        when matched.trace_id is not null then matched.job_match
        when ambiguous.trace_id is not null then 'ambiguous'
        else 'none'
    end as job_match,
    matched.cluster,
    matched.job_id,
    matched.started_at as job_started_at,
    traces.job_id as traced_job_id,
    coalesce(traces.user, matched.user) as user,
    coalesce(traces.application, matched.application) as application,
    traces.command,
    traces.process_count,
    matched.node_count,
    traces.started_at,
    traces.ended_at,
    traces.duration_s,
    traces.time_resolution_s
from traces
left join matched using (trace_id)
left join ambiguous on traces.trace_id = ambiguous.trace_id
where
    list_contains($days::date[], traces.ended_on)
    or ($has_undated and traces.ended_on is null)
order by traces.ended_on, traces.trace_id
