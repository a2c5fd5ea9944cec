-- unattributed_patterns: recurring patterns that no job explains
select
    filesystem,
    direction,
    period_s,
    occurrence_bytes,
    occurrence_count
from unattributed_patterns
where outcome = 'unattributed'
order by occurrence_bytes * occurrence_count desc
