-- signature_bursts: a typical burst of each application
select
    application_id,
    direction,
    count(*) as burst_count,
    median(volume_bytes) as median_bytes,
    median(end_s - start_s) as median_duration_s
from default_signature_bursts
group by all
order by median_bytes desc
limit 10
