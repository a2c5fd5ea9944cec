-- samples.exact_runs: one row per application run and file system that counts by job, with the grid of its sample
with

runs as (
    select * from samples.runs
    where list_contains($days::date[], ended_on) and ended_at is not null
),

run_counter_deltas as (
    select * from samples.run_counter_deltas
),

counters_daily as (
    select * from stage.counters_daily
),

counter_gaps as (
    select * from stage.counter_gaps
    where is_job_scrape and flag = 'lost_scrapes'
),

-- without a counter of any run of a machine, it is unknown whether its runs moved bytes
known as (
    select distinct
        cluster,
        filesystem
    from run_counter_deltas
    where is_owner
),

-- what a run may have used, and what it did use
places as (
    select
        runs.cluster,
        runs.job_id,
        runs.started_at,
        runs.filesystem
    from runs
    inner join known using (cluster, filesystem)
    union
    select
        cluster,
        job_id,
        started_at,
        filesystem
    from run_counter_deltas
),

spans as (
    select
        cluster,
        job_id,
        started_at,
        any_value(ended_on) as ended_on,
        any_value(ended_at) as ended_at,
        any_value(application_id) as application_id
    from runs
    group by cluster, job_id, started_at
),

-- days of each run; its last day gives the spacing of scrapes
covered as (
    select
        places.*,
        spans.ended_on,
        spans.ended_at,
        spans.application_id,
        arg_max(counters_daily.interval_s, (counters_daily.scraped_on <= spans.ended_on, counters_daily.scraped_on))
            as interval_s,
        arg_max(counters_daily.grid_phase_s, (counters_daily.scraped_on <= spans.ended_on, counters_daily.scraped_on))
            as grid_phase_s,
        min(counters_daily.coverage_started_at) as coverage_started_at,
        max(counters_daily.coverage_ended_at) as coverage_ended_at,
        count(*) filter (where counters_daily.scraped_on <= spans.ended_on) as day_count
    from places
    inner join spans using (cluster, job_id, started_at)
    inner join counters_daily
        on places.filesystem = counters_daily.filesystem
        and counters_daily.scraped_on between (places.started_at at time zone 'UTC')::date
        and (spans.ended_at at time zone 'UTC')::date + 1
    group by all
),

-- the polls' grid where it has the same step
gridded as (
    select
        covered.*,
        round(covered.interval_s * 1e6)::bigint as step_us,
        coalesce(runs.phase_us, round(covered.grid_phase_s * 1e6)::bigint) as phase_us,
        epoch_us(covered.started_at) as started_us,
        epoch_us(covered.ended_at) as ended_us
    from covered
    left join runs
        on covered.cluster = runs.cluster
        and covered.job_id = runs.job_id
        and covered.started_at = runs.started_at
        and covered.filesystem = runs.filesystem
        and runs.step_us = round(covered.interval_s * 1e6)::bigint
),

sums as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        bool_and(is_sure) as is_sure,
        bool_and(is_alone) as is_alone
    from run_counter_deltas
    group by all
),

-- counts may be lost unnoticed if a run started or ended during a gap between scrapes
lost as (
    select distinct
        gridded.cluster,
        gridded.job_id,
        gridded.started_at,
        gridded.filesystem
    from gridded
    inner join counter_gaps
        on gridded.filesystem = counter_gaps.filesystem
        and gridded.ended_at > counter_gaps.interval_started_at
        and gridded.started_at < counter_gaps.interval_ended_at
        and (gridded.started_at > counter_gaps.interval_started_at or gridded.ended_at < counter_gaps.interval_ended_at)
)

-- a step belongs to the run if its right edge lies in [started_at, ended_at + interval_s)
select
    gridded.ended_on,
    gridded.application_id,
    gridded.cluster,
    gridded.job_id,
    gridded.started_at,
    gridded.ended_at,
    gridded.filesystem,
    gridded.interval_s,
    gridded.step_us,
    gridded.phase_us,
    ((gridded.started_us - gridded.phase_us + gridded.step_us - 1) // gridded.step_us)::bigint as first_step,
    ((gridded.ended_us - gridded.phase_us + 2 * gridded.step_us - 1) // gridded.step_us - 1)::bigint as last_step,
    make_timestamptz((first_step - 1) * gridded.step_us + gridded.phase_us) as grid_started_at,
    last_step - first_step + 1 as step_count,
    gridded.coverage_started_at,
    gridded.coverage_ended_at,
    case
        when not coalesce(sums.is_alone, true) then 'several_runs'
        when
            not coalesce(sums.is_sure, true)
            or lost.cluster is not null
            or gridded.coverage_started_at > gridded.started_at
            or gridded.coverage_ended_at < gridded.ended_at
            or gridded.day_count < (gridded.ended_on - (gridded.started_at at time zone 'UTC')::date) + 1
            then 'incomplete'
        else 'measured'
    end as outcome
from gridded
left join sums using (cluster, job_id, started_at, filesystem)
left join lost using (cluster, job_id, started_at, filesystem)
order by gridded.cluster, gridded.job_id, gridded.started_at, gridded.filesystem
