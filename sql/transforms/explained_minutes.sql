-- transforms.explained_minutes: one row per file system, direction and minute with explained bytes
with

attributed_io as (
    select * from transforms.attributed_io
)

select
    filesystem,
    direction,
    minute_at,
    sum(attributed_bytes order by attributed_bytes) as attributed_bytes
from attributed_io
group by filesystem, direction, minute_at
order by filesystem, direction, minute_at
