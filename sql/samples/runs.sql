-- samples.runs: one row per application run and file system that it may have used, with its sample's grid
with

all_runs as (
    select * from stage.jobs
    where is_application_run and (ended_at is null or ended_at >= started_at)
),

wanted as (
    select
        min(started_at) as first_run_started_at,
        max(ended_at) as last_run_ended_at
    from all_runs
    where list_contains($days::date[], ended_on)
),

-- runs of the requested days, and the runs concurrent with them
jobs as (
    select all_runs.*
    from all_runs
    inner join wanted
        on all_runs.started_at <= wanted.last_run_ended_at
        and (all_runs.ended_at is null or all_runs.ended_at >= wanted.first_run_started_at)
),

polls_daily as (
    select * from stage.polls_daily
),

partition_filesystems as (
    select * from settings.partition_filesystems
),

-- those that were polled while a run of the wanted days was there: what is polled later says nothing of them
filesystems as (
    select distinct polls_daily.filesystem
    from polls_daily
    inner join wanted
        on polls_daily.polled_on between (wanted.first_run_started_at at time zone 'UTC')::date
        and (
            (wanted.last_run_ended_at + to_microseconds(round(polls_daily.interval_s * 1e6)::bigint)) at time zone 'UTC'
        )::date
),

-- its own file system where the log says which, else those of its partition, else every one
candidates as (
    select
        jobs.*,
        coalesce(jobs.filesystem, partition_filesystems.filesystem, filesystems.filesystem) as used_filesystem
    from jobs
    left join partition_filesystems
        on jobs.filesystem is null and jobs.partition = partition_filesystems.partition
    left join filesystems
        on jobs.filesystem is null and partition_filesystems.filesystem is null
),

-- polls of a day on which a run started, went on or ended, or on which its last poll came in after midnight;
-- the last day of the run's own says how they are spaced
covered as (
    select
        candidates.cluster,
        candidates.job_id,
        candidates.started_at,
        polls_daily.filesystem,
        arg_max(
            polls_daily.interval_s, (polls_daily.polled_on <= candidates.ended_on, polls_daily.polled_on)
        ) as interval_s,
        arg_max(
            polls_daily.grid_phase_s, (polls_daily.polled_on <= candidates.ended_on, polls_daily.polled_on)
        ) as grid_phase_s,
        max(polls_daily.controller_count) as controller_count
    from candidates
    inner join polls_daily
        on candidates.used_filesystem = polls_daily.filesystem
        and polls_daily.polled_on between (candidates.started_at at time zone 'UTC')::date
        and (
            (candidates.ended_at + to_microseconds(round(polls_daily.interval_s * 1e6)::bigint)) at time zone 'UTC'
        )::date
    group by all
),

timed as (
    select
        candidates.*,
        covered.interval_s,
        covered.controller_count,
        round(covered.interval_s * 1e6)::bigint as step_us,
        round(covered.grid_phase_s * 1e6)::bigint as phase_us,
        epoch_us(candidates.started_at) as started_us,
        epoch_us(candidates.ended_at) as ended_us
    from candidates
    left join covered
        on candidates.cluster = covered.cluster
        and candidates.job_id = covered.job_id
        and candidates.started_at = covered.started_at
        and candidates.used_filesystem = covered.filesystem
)

-- a step belongs to the run if its right edge lies in [started_at, ended_at + interval_s)
select
    timed.ended_on,
    timed.application_id,
    timed.cluster,
    timed.job_id,
    timed.started_at,
    timed.ended_at,
    timed.used_filesystem as filesystem,
    timed.interval_s,
    timed.step_us,
    timed.phase_us,
    timed.controller_count as expected_controller_count,
    ((timed.started_us - timed.phase_us + timed.step_us - 1) // timed.step_us)::bigint as first_step,
    ((timed.ended_us - timed.phase_us + 2 * timed.step_us - 1) // timed.step_us - 1)::bigint as last_step
from timed
order by timed.ended_on, timed.cluster, timed.job_id, timed.started_at, timed.used_filesystem
