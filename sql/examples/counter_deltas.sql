-- counter_deltas: bytes of a target by hour
select
    target,
    time_bucket(interval 1 hour, interval_ended_at) as hour,
    sum(written_bytes) as written_bytes
from counter_deltas
group by all
order by written_bytes desc nulls last
limit 10
