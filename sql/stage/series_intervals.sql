-- stage.series_intervals: one row per subject, direction and interval of the subject's own series
with

series as (
    select * from landed.series
),

dated as (
    select
        subject_id,
        case when max(time_s) between 1e9 and 1e10 then (to_timestamp(max(time_s)) at time zone 'UTC')::date end
            as ended_on
    from series
    group by subject_id
)

-- the last landing of a subject replaces earlier, shorter ones
select
    dated.ended_on,
    series.subject_id,
    series.direction,
    series.time_s,
    series.interval_s,
    series.bytes_per_s,
    series.flag,
    series.node_count
from series
inner join dated using (subject_id)
where list_contains($days::date[], dated.ended_on) or ($has_undated and dated.ended_on is null)
qualify
    row_number() over (
        partition by series.subject_id, series.direction, series.time_s
        order by series.part_order desc, series.part_row desc
    ) = 1
order by dated.ended_on, series.subject_id, series.direction, series.time_s
