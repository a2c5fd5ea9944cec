-- stage.stale_days: one row per UTC day with runs or series to recompute, NULL for those without an end
with

touched_landings as (
    select unnest($landings::varchar[]) as landing_id
),

job_records as (
    select
        coalesce(cluster, 'default') as cluster,
        split_part(job_id, '.', 1) as whole_job_id,
        started_at,
        ended_at,
        job_records.user as user_name,
        landing_id in (select landing_id from touched_landings) as is_new
    from landed.job_records
),

traces as (
    select
        ended_on,
        job_id,
        coalesce(traces.user, uid::varchar) as user_name,
        started_at,
        ended_at,
        landing_id in (select landing_id from touched_landings) as is_new
    from landed.traces
),

series as (
    select
        subject_id,
        landing_id,
        landing_id in (select landing_id from touched_landings) as is_new,
        time_s
    from landed.series
),

touched_jobs as (
    select distinct
        cluster,
        whole_job_id
    from job_records
    where is_new
),

touched_series as (
    select distinct subject_id
    from series
    where is_new
),

stale_counters as (
    select
        unnest($counter_days::date[]) as scraped_on,
        unnest($counter_reaches_s::double[]) as reach_s
),

stale_polls as (
    select unnest($poll_days::date[]) as polled_on
),

-- every day on which a record of a touched job or of its steps ends, since a later record may have moved
-- the end, and a step's record changes what is known of its job
of_new_records as (
    select (ended_at at time zone 'UTC')::date as ended_on
    from job_records
    semi join touched_jobs using (cluster, whole_job_id)
),

-- a run's last poll ends up to an interval after the run
of_new_polls as (
    select (job_records.ended_at at time zone 'UTC')::date as ended_on
    from job_records
    inner join stale_polls
        on stale_polls.polled_on between (job_records.started_at at time zone 'UTC')::date
        and ((job_records.ended_at + to_seconds($longest_interval_s)) at time zone 'UTC')::date
),

-- counters of a job may be scraped after its end
of_new_counters as (
    select (job_records.ended_at at time zone 'UTC')::date as ended_on
    from job_records
    inner join stale_counters
        on stale_counters.scraped_on between (job_records.started_at at time zone 'UTC')::date
        and ((job_records.ended_at + to_seconds(stale_counters.reach_s)) at time zone 'UTC')::date
),

-- a time beyond a thousand million seconds is one since 1970; a smaller one, since the series' own zero;
-- each landing says when a touched series ended as far as it was known then
of_new_series as (
    select
        case when max(time_s) between 1e9 and 1e10 then (to_timestamp(max(time_s)) at time zone 'UTC')::date end
            as ended_on
    from series
    semi join touched_series using (subject_id)
    group by subject_id, landing_id
),

-- a record of a job may be what an earlier trace was to be joined with
of_traces as (
    select traces.ended_on
    from traces
    left join job_records
        on job_records.is_new
        and (traces.job_id = job_records.whole_job_id or traces.user_name = job_records.user_name)
        and (
            traces.started_at is null
            or (
                traces.started_at >= job_records.started_at - to_seconds($clock_tolerance_s)
                and traces.ended_at
                <= coalesce(job_records.ended_at, 'infinity'::timestamptz) + to_seconds($clock_tolerance_s)
            )
        )
    where traces.is_new or job_records.is_new
)

select ended_on from of_new_records
union
select ended_on from of_traces
union
select polled_on as ended_on from stale_polls
union
select ended_on from of_new_polls
union
select ended_on from of_new_counters
union
select ended_on from of_new_series
order by ended_on
