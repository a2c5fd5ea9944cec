-- stage.class_reviews: one row per run, series or application, file system, direction and reviewer
with

review_records as (
    select * from landed.review_records
),

-- reviewers may correct themselves
latest as (
    select * from review_records
    qualify
        row_number()
            over (
                partition by subject_kind, cluster, subject_id, started_at, filesystem, direction, reviewer
                order by reviewed_at desc, part_order desc, part_row desc
            )
        = 1
)

select
    subject_kind,
    cluster,
    subject_id,
    started_at,
    filesystem,
    direction,
    reviewer,
    reviewed_at,
    proposed_label,
    label_verdict,
    proposed_period_s,
    period_verdict
from latest
order by subject_kind, cluster, subject_id, started_at, filesystem, direction, reviewer
