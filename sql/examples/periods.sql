-- periods: applications with a period of 5 to 30 minutes
select
    subject_id as application_id,
    filesystem,
    direction,
    period_s,
    period_error_s
from default_periods
where subject_kind = 'application' and period_s between 300 and 1800
order by period_s
