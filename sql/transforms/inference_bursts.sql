-- transforms.inference_bursts: one row per burst of a default signature that is used for a run of the day
with

inference_runs as (
    select * from transforms.inference_runs
    where refusal is null
),

signatures as (
    select * from transforms.signatures
    where is_default or metric = 'operations'
),

signature_bursts as (
    select * from transforms.signature_bursts
)

select
    application_id,
    filesystem,
    direction,
    metric,
    method,
    burst,
    start_s,
    peak_s,
    end_s,
    volume_bytes,
    support_ratio,
    volume_operations
from signature_bursts
semi join signatures using (application_id, filesystem, direction, metric, method)
semi join inference_runs using (application_id, filesystem, direction, metric)
order by application_id, filesystem, direction, metric, method, burst
