-- attributed_io: the application that moved most in each hour
select
    filesystem,
    time_bucket(interval 1 hour, minute_at) as hour,
    application_id,
    sum(attributed_bytes) as hour_bytes
from attributed_io
group by filesystem, hour, application_id
qualify row_number() over (partition by filesystem, hour order by hour_bytes desc) = 1
order by filesystem, hour
