-- applications: applications with most runs
select
    application_id,
    sample_count,
    last_run_ended_at
from applications
order by sample_count desc
limit 10
