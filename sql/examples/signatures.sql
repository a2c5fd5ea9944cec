-- signatures: signatures of the default method, largest volume first
select
    application_id,
    filesystem,
    direction,
    volume_bytes,
    burst_count,
    expected_correlation
from signatures
where is_default and outcome = 'extracted'
order by volume_bytes desc
limit 10
