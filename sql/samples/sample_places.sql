-- samples.sample_places: one row per application run, file system and direction with a grid, and its row numbers
with

runs as (
    select * from samples.runs
    where list_contains($days::date[], ended_on) and step_us is not null
),

grid_steps as (
    select * from samples.grid_steps
),

-- the rows of grid_steps lie grid by grid, and within a grid no step is missing
grids as (
    select
        filesystem,
        step_us,
        phase_us,
        min(step) as first_step,
        sum(count(*)) over (order by filesystem, step_us, phase_us) - count(*) as place
    from grid_steps
    group by filesystem, step_us, phase_us
)

select
    runs.ended_on,
    runs.application_id,
    runs.cluster,
    runs.job_id,
    runs.started_at,
    runs.filesystem,
    unnest(['read', 'write']) as direction,
    make_timestamptz((runs.first_step - 1) * runs.step_us + runs.phase_us) as grid_started_at,
    runs.interval_s,
    runs.last_step - runs.first_step + 1 as step_count,
    (grids.place + runs.first_step - grids.first_step)::bigint as first_place
from runs
inner join grids using (filesystem, step_us, phase_us)
order by runs.application_id, runs.cluster, runs.job_id, runs.started_at, runs.filesystem, direction
