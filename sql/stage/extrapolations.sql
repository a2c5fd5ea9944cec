-- stage.extrapolations: one row per set of traces and rank count that it was extrapolated to
with

extrapolation_records as (
    select * from landed.extrapolation_records
),

-- the last word counts: models, and so what comes of a set, may differ from one version to the next
latest as (
    select * from extrapolation_records
    qualify
        row_number() over (partition by trace_set_id, process_count order by part_order desc, part_row desc) = 1
)

select
    trace_set_id,
    trace_set,
    trace_ids,
    rank_counts,
    process_count,
    has_nested_calls,
    outcome,
    models,
    refused_fields,
    class_count,
    call_count,
    read_bytes,
    written_bytes,
    file_count,
    source_file
from latest
order by trace_set_id, process_count
