-- trace_files: files with most stripes
select
    trace_id,
    path,
    filesystem_kind,
    len(osts) as stripe_count
from trace_files
order by stripe_count desc nulls last
limit 10
