-- stage.faulty_polls: one row per poll excluded from sums, and broken rule
with

polls as (
    select * from landed.polls
),

repeated_polls as (
    select * from stage.repeated_polls
    where conflicting_poll_count > 0
),

implausible as (
    select
        'rate_within_limit' as rule,
        polls
    from polls
    where
        greatest(polls.read_bytes_per_s, polls.write_bytes_per_s) > $max_controller_bytes_per_s
        or greatest(polls.read_bytes_per_s, polls.write_bytes_per_s) * polls.interval_s > 2 ** 53
),

contradicting as (
    select
        'polls_agree' as rule,
        polls
    from polls
    inner join repeated_polls using (filesystem, controller, polled_at)
    where
        coalesce(polls.read_bytes_per_s, polls.write_bytes_per_s) is not null
        and (
            round(polls.read_bytes_per_s * polls.interval_s)
            is distinct from round(repeated_polls.read_bytes_per_s * repeated_polls.interval_s)
            or round(polls.write_bytes_per_s * polls.interval_s)
            is distinct from round(repeated_polls.write_bytes_per_s * repeated_polls.interval_s)
        )
),

faulty as (
    select * from implausible
    union all
    select * from contradicting
)

select distinct
    (polls.polled_at at time zone 'UTC')::date as day,
    'polls' as table_name,
    rule,
    to_json({
        'landing_id': polls.landing_id,
        'filesystem': polls.filesystem,
        'controller': polls.controller,
        'polled_at': polls.polled_at,
        'interval_s': polls.interval_s,
        'read_bytes_per_s': polls.read_bytes_per_s,
        'write_bytes_per_s': polls.write_bytes_per_s
    })::varchar as row_json
from faulty
order by rule, row_json
