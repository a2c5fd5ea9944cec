-- stage.faulty_predictions: one row per record that contradicts an earlier one of the same evaluation, and rule
with

prediction_records as (
    select
        part_order,
        part_row,
        landing_id,
        predicted_on,
        followed_id,
        direction,
        evaluation,
        {
            'predicted_on': predicted_on,
            'followed_id': followed_id,
            'subject_kind': subject_kind,
            'cluster': cluster,
            'subject_id': subject_id,
            'filesystem': filesystem,
            'direction': direction,
            'source': source,
            'is_shared_traffic': is_shared_traffic,
            'run_number': run_number,
            'evaluation': evaluation,
            'predicted_at': predicted_at,
            'window_strategy': window_strategy,
            'window_start_s': window_start_s,
            'window_end_s': window_end_s,
            'sampling_hz': sampling_hz,
            'sample_count': sample_count,
            'method': method,
            'method_parameters': method_parameters,
            'outcome': outcome,
            'frequency_hz': frequency_hz,
            'period_s': period_s,
            'confidence': confidence,
            'false_alarm_probability': false_alarm_probability,
            'shortest_period_s': shortest_period_s,
            'longest_period_s': longest_period_s,
            'probability': probability,
            'hit_probability': hit_probability,
            'intervals': intervals,
            'volume_bytes': volume_bytes,
            'request_count': request_count,
            'phase_count': phase_count,
            'last_phase_start_s': last_phase_start_s,
            'next_burst_outcome': next_burst_outcome,
            'next_burst_earliest_s': next_burst_earliest_s,
            'next_burst_start_s': next_burst_start_s,
            'next_burst_latest_s': next_burst_latest_s,
            'next_burst_low_bytes': next_burst_low_bytes,
            'next_burst_bytes': next_burst_bytes,
            'next_burst_high_bytes': next_burst_high_bytes,
            'change': change,
            'change_s': change_s,
            'phase_state': phase_state,
            'transition_cause': transition_cause,
            'events': events,
            'is_final': is_final
        } as prediction
    from landed.prediction_records
),

of_days as (
    select * from prediction_records
    where list_contains($days::date[], predicted_on)
),

-- what each evaluation of the days is in all landings, the first one landed first
numbered as (
    select
        part_order,
        part_row,
        followed_id,
        direction,
        evaluation,
        row_number() over (partition by followed_id, direction, evaluation order by part_order, part_row) as place,
        count(*) over (partition by followed_id, direction, evaluation) as record_count
    from prediction_records
    semi join of_days using (followed_id, direction, evaluation)
),

first_records as (
    select
        prediction_records.followed_id,
        prediction_records.direction,
        prediction_records.evaluation,
        prediction_records.prediction
    from prediction_records
    inner join numbered using (part_order, part_row)
    where numbered.place = 1 and numbered.record_count > 1
),

contradicting as (
    select of_days
    from of_days
    inner join first_records using (followed_id, direction, evaluation)
    where of_days.prediction is distinct from first_records.prediction
)

select distinct
    of_days.predicted_on as day,
    'prediction_records' as table_name,
    'predictions_agree' as rule,
    to_json({
        'landing_id': of_days.landing_id,
        'prediction': of_days.prediction
    })::varchar as row_json
from contradicting
order by row_json
