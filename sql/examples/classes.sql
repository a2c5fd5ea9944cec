-- classes: runs and bytes by class
select
    direction,
    label,
    count(*) as run_count,
    sum(volume_bytes) as moved_bytes
from classes
where subject_kind = 'job' and metric = 'bytes' and outcome = 'classified'
group by all
order by all
