-- counters_daily: completeness of the counters
select
    scraped_on,
    filesystem,
    missing_ratio,
    gap_count,
    unknown_delta_count
from counters_daily
order by missing_ratio desc nulls last
