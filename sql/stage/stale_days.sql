-- stage.stale_days: one row per UTC day whose runs or series must be computed anew, NULL for those without an end
with

job_records as (
    select
        coalesce(cluster, 'default') as cluster,
        job_id,
        started_at,
        ended_at,
        list_contains($landings, landing_id) as is_new
    from landed.job_records
),

series as (
    select
        subject_id,
        list_contains($landings, landing_id) as is_new,
        time_s
    from landed.series
),

stale_polls as (
    select unnest($poll_days::date[]) as polled_on
),

-- every day on which a record of a touched job ends, since a later record may have moved the end
of_new_records as (
    select (ended_at at time zone 'UTC')::date as ended_on
    from job_records
    semi join (select distinct cluster, job_id from job_records where is_new) as touched using (cluster, job_id)
),

-- a run's last poll ends up to an interval after the run
of_new_polls as (
    select (job_records.ended_at at time zone 'UTC')::date as ended_on
    from job_records
    inner join stale_polls
        on stale_polls.polled_on between (job_records.started_at at time zone 'UTC')::date
        and ((job_records.ended_at + to_seconds(60)) at time zone 'UTC')::date
),

-- a time beyond a thousand million seconds is one since 1970; a smaller one, since the series' own zero
of_new_series as (
    select case when max(time_s) >= 1e9 then (to_timestamp(max(time_s)) at time zone 'UTC')::date end as ended_on
    from series
    semi join (select distinct subject_id from series where is_new) as touched using (subject_id)
    group by subject_id
)

select ended_on from of_new_records
union
select polled_on as ended_on from stale_polls
union
select ended_on from of_new_polls
union
select ended_on from of_new_series
order by ended_on
