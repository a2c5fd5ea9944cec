-- slowdowns: applications that delayed others most
select
    top_interferer_application_id,
    sum(delay_s) as delay_s,
    count(*) as burst_count
from slowdowns
where outcome = 'slowed'
group by all
order by delay_s desc nulls last
limit 10
