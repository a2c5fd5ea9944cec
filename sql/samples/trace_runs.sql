-- samples.trace_runs: one row per traced application run and direction, with the grids of its sample and of the polls
with

runs as (
    select * from samples.runs
    where list_contains($days::date[], ended_on) and ended_at is not null
),

jobs as (
    select
        cluster,
        job_id,
        started_at,
        duration_s,
        task_count
    from stage.jobs
),

trace_jobs as (
    select * from stage.trace_jobs
    where job_started_at is not null
),

job_io_sources as (
    select * from samples.job_io_sources
    where source = 'client' and started_at is not null
),

-- modules of which the tracer recorded a part
partial_traces as (
    select distinct trace_id
    from stage.trace_counters
    where is_counted and outcome = 'partial'
),

trace_series as (
    select * from samples.trace_series
),

grid_steps as (
    select * from samples.grid_steps
),

-- a trace adds the time after the end of all earlier traces of its run
added as (
    select
        trace_jobs.*,
        partial_traces.trace_id is not null as is_partial,
        epoch_us(trace_jobs.ended_at) - greatest(
            epoch_us(trace_jobs.started_at),
            coalesce(
                max(epoch_us(trace_jobs.ended_at)) over (
                    partition by trace_jobs.cluster, trace_jobs.job_id, trace_jobs.job_started_at
                    order by trace_jobs.started_at, trace_jobs.ended_at, trace_jobs.trace_id
                    rows between unbounded preceding and 1 preceding
                ),
                epoch_us(trace_jobs.started_at)
            )
        ) as added_us
    from trace_jobs
    left join partial_traces using (trace_id)
),

traced as (
    select
        cluster,
        job_id,
        job_started_at as started_at,
        min(tracer) as tracer,
        count(distinct tracer) as tracer_count,
        max(process_count) as process_count,
        bool_or(is_partial) as is_partial,
        case when count(*) = count(added_us) then sum(greatest(added_us, 0)) / 1e6 end as traced_s
    from added
    group by all
),

-- bytes of each file system; a trace without mounts has all in one without a name
volumes as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        sum(own_bytes) as own_bytes,
        bool_and(own_bytes is not null and direction <> 'unstated') as is_known
    from job_io_sources
    group by all
),

both_directions as (
    select
        cluster,
        job_id,
        started_at,
        coalesce(filesystem, '') as filesystem,
        coalesce(sum(own_bytes), 0) as own_bytes
    from volumes
    group by all
),

mains as (
    select
        cluster,
        job_id,
        started_at,
        arg_max(filesystem, (own_bytes, filesystem)) as main_filesystem
    from both_directions
    group by all
),

-- bytes whose direction is unknown may belong to either
directed as (
    select
        mains.*,
        directions.direction,
        coalesce(sum(volumes.own_bytes), 0) as traced_bytes,
        coalesce(sum(volumes.own_bytes) filter (coalesce(volumes.filesystem, '') = mains.main_filesystem), 0)
            as main_bytes,
        coalesce(bool_and(volumes.is_known), true) as is_known
    from mains
    cross join (values ('read'), ('write')) as directions (direction)
    left join volumes
        on mains.cluster = volumes.cluster
        and mains.job_id = volumes.job_id
        and mains.started_at = volumes.started_at
        and (directions.direction = volumes.direction or volumes.direction = 'unstated')
    group by all
),

places as (
    select
        cluster,
        job_id,
        started_at,
        any_value(ended_on) as ended_on,
        any_value(ended_at) as ended_at,
        any_value(application_id) as application_id,
        case when count(*) = 1 then any_value(filesystem) end as only_filesystem
    from runs
    group by cluster, job_id, started_at
),

-- where the trace names no file system, the run's only one; steps of one second, of which a step belongs to the run if
-- its right edge lies in [started_at, ended_at + 1 s)
placed as (
    select
        places.*,
        directed.direction,
        directed.traced_bytes,
        directed.main_bytes,
        directed.is_known,
        coalesce(nullif(directed.main_filesystem, ''), places.only_filesystem) as filesystem,
        ((epoch_us(places.started_at) + 999999) // 1000000)::bigint as first_step,
        ((epoch_us(places.ended_at) + 1999999) // 1000000 - 1)::bigint as last_step
    from directed
    inner join places using (cluster, job_id, started_at)
),

-- that of most bytes
bases as (
    select
        cluster,
        job_id,
        started_at,
        direction,
        arg_max(basis, (coalesce(list_sum(signal_bytes_per_s), 0) * interval_s, basis)) as basis
    from trace_series
    group by all
),

-- the rows of grid_steps lie grid by grid, and within a grid no step is missing
grids as (
    select
        filesystem,
        step_us,
        phase_us,
        min(step) as first_step,
        max(step) as last_step,
        sum(count(*)) over (order by filesystem, step_us, phase_us) - count(*) as place
    from grid_steps
    group by filesystem, step_us, phase_us
)

select
    placed.ended_on,
    placed.application_id,
    placed.cluster,
    placed.job_id,
    placed.started_at,
    placed.ended_at,
    placed.filesystem,
    placed.direction,
    traced.tracer,
    bases.basis,
    placed.traced_bytes::double as traced_bytes,
    case
        when traced.tracer_count > 1 then 'several_tracers'
        when not placed.is_known then 'unknown_sizes'
        when placed.main_bytes < (1 - $max_excess_ratio) * placed.traced_bytes then 'several_filesystems'
        when
            traced.is_partial
            or coalesce(traced.traced_s < 0.9 * jobs.duration_s, true)
            or coalesce(traced.process_count < 0.9 * jobs.task_count, false)
            then 'incomplete'
        else 'measured'
    end as outcome,
    1.0::double as interval_s,
    1000000::bigint as step_us,
    0::bigint as phase_us,
    placed.first_step,
    placed.last_step,
    make_timestamptz((placed.first_step - 1) * 1000000) as grid_started_at,
    placed.last_step - placed.first_step + 1 as step_count,
    grids.step_us as poll_step_us,
    grids.phase_us as poll_phase_us,
    runs.first_step as poll_first_step,
    runs.last_step as poll_last_step,
    (grids.place - grids.first_step)::bigint as poll_place,
    grids.first_step as polled_first_step,
    grids.last_step as polled_last_step
from placed
inner join traced using (cluster, job_id, started_at)
inner join jobs using (cluster, job_id, started_at)
left join bases using (cluster, job_id, started_at, direction)
left join runs
    on placed.cluster = runs.cluster
    and placed.job_id = runs.job_id
    and placed.started_at = runs.started_at
    and placed.filesystem = runs.filesystem
left join grids
    on runs.filesystem = grids.filesystem
    and runs.step_us = grids.step_us
    and runs.phase_us = grids.phase_us
where placed.filesystem is not null
order by placed.cluster, placed.job_id, placed.started_at, placed.filesystem, placed.direction
