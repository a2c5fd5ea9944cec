-- sample_sets: size of each sample set
select
    application_id,
    filesystem,
    direction,
    count(*) as sample_count
from sample_sets
where metric = 'bytes'
group by all
order by sample_count desc
limit 10
