-- counter_gaps: targets that were silent longest
select
    target,
    sum(epoch(interval_ended_at) - epoch(interval_started_at)) as gap_s
from counter_gaps
group by target
order by gap_s desc nulls last
limit 10
