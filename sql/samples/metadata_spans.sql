-- samples.metadata_spans: one row per traced run with metadata calls, with its duration
with

trace_jobs as (
    select * from stage.trace_jobs
),

ends as (
    select
        trace_id,
        max(end_s) as latest_s
    from landed.trace_metadata
    group by trace_id
)

select
    trace_jobs.ended_on,
    trace_jobs.trace_id,
    greatest(trace_jobs.duration_s, ends.latest_s, 0) as lasting_s
from trace_jobs
inner join ends using (trace_id)
order by trace_jobs.trace_id
