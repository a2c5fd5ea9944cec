-- filesystem_rates: the busiest hours of each file system
select
    filesystem,
    time_bucket(interval 1 hour, polled_at) as hour,
    sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) as moved_bytes
from filesystem_rates
group by all
order by moved_bytes desc
limit 10
