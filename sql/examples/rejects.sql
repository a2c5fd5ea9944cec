-- rejects: reasons for which input was refused
select
    reason,
    remedy,
    count(*) as row_count,
    min(source_file) as example_file
from rejects
group by all
order by row_count desc
