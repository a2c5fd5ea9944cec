-- series_intervals: bytes of each series
select
    subject_id,
    direction,
    sum(bytes_per_s * interval_s) as moved_bytes
from series_intervals
group by all
order by moved_bytes desc nulls last
limit 10
