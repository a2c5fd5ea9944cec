-- trace_records: ranks with most written bytes
select
    trace_id,
    rank,
    sum(written_bytes) as written_bytes
from trace_records
group by all
order by written_bytes desc nulls last
limit 10
