-- predictions: last prediction of each followed run
select
    followed_id,
    direction,
    period_s,
    probability,
    next_burst_start_s
from predictions
qualify row_number() over (partition by followed_id, direction order by evaluation desc) = 1
