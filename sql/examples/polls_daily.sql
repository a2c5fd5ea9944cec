-- polls_daily: days on which polls are missing
select
    polled_on,
    filesystem,
    missing_ratio
from polls_daily
where missing_ratio > 0.01
order by missing_ratio desc
