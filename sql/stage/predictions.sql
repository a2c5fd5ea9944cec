-- stage.predictions: one row per evaluation of a followed trace or job, and direction
with

prediction_records as (
    select * from landed.prediction_records
),

of_days as (
    select * from prediction_records
    where list_contains($days::date[], predicted_on)
),

-- the first one landed counts, whatever the day of the others: whoever has acted on a prediction has acted on it
first_records as (
    select
        part_order,
        part_row
    from prediction_records
    semi join of_days using (followed_id, direction, evaluation)
    qualify
        row_number() over (partition by followed_id, direction, evaluation order by part_order, part_row) = 1
)

select
    predicted_on,
    followed_id,
    subject_kind,
    cluster,
    subject_id,
    filesystem,
    direction,
    source,
    is_shared_traffic,
    run_number,
    evaluation,
    predicted_at,
    window_strategy,
    window_start_s,
    window_end_s,
    sampling_hz,
    sample_count,
    method,
    method_parameters,
    outcome,
    frequency_hz,
    period_s,
    confidence,
    false_alarm_probability,
    shortest_period_s,
    longest_period_s,
    probability,
    hit_probability,
    intervals,
    volume_bytes,
    request_count,
    phase_count,
    last_phase_start_s,
    next_burst_outcome,
    next_burst_earliest_s,
    next_burst_start_s,
    next_burst_latest_s,
    next_burst_low_bytes,
    next_burst_bytes,
    next_burst_high_bytes,
    change,
    change_s,
    phase_state,
    transition_cause,
    events,
    is_final
from of_days
semi join first_records using (part_order, part_row)
order by followed_id, direction, evaluation
