-- quarantine: quarantined rows by rule
select
    table_name,
    rule,
    count(*) as row_count
from quarantine
group by all
order by row_count desc
