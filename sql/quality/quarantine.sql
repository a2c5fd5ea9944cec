-- quality.quarantine: one row per quarantined row and broken rule
with

faulty_jobs as (
    select * from quality.faulty_jobs
),

faulty_polls as (
    select * from stage.faulty_polls
),

faulty_predictions as (
    select * from stage.faulty_predictions
),

released_quarantine as (
    select * from released.quarantine
),

rebuilt_days as (
    select * from run.rebuilt_days
),

-- a day on which only some tables are computed again keeps the rows of the others
gathered as (
    select * from faulty_jobs
    union all
    select * from faulty_polls
    union all
    select * from faulty_predictions
    union all
    select released_quarantine.* from released_quarantine
    anti join rebuilt_days
        on released_quarantine.table_name = rebuilt_days.table_name
        and released_quarantine.day is not distinct from rebuilt_days.day
)

select distinct
    day,
    table_name,
    rule,
    row_json
from gathered
order by table_name, rule, row_json
