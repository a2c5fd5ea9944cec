-- releases: the last releases
select
    release_id,
    created_at
from releases
order by created_at desc
limit 5
