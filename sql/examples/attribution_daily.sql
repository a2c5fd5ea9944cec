-- attribution_daily: share of the bytes that is attributed
select
    polled_on,
    filesystem,
    direction,
    attributed_bytes / nullif(measured_bytes, 0) as attributed_ratio
from attribution_daily
order by all
