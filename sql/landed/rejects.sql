-- landed.rejects: one row per refused input row or unreadable file
select
    landing_id,
    source_file,
    line,
    reason,
    remedy,
    raw
from landed.rejects
order by landing_id, line, reason
