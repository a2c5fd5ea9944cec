-- counter_last_values: when each target was last read
select
    filesystem,
    target,
    max(sampled_at) as last_at
from counter_last_values
group by all
order by last_at
limit 10
