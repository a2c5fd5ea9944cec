-- job_classes: classes of jobs by bytes, with user, account and application
select
    classes.ended_on,
    classes.cluster,
    classes.subject_id as job_id,
    classes.started_at,
    classes.filesystem,
    classes.direction,
    jobs.user,
    jobs.account,
    jobs.application,
    jobs.application_id,
    classes.basis,
    classes.outcome,
    classes.label,
    classes.section_bytes,
    classes.cv,
    classes.volume_bytes,
    classes.node_count,
    classes.duration_s,
    classes.missing_ratio
from classes
left join jobs
    on
    classes.cluster = jobs.cluster
    and classes.subject_id = jobs.job_id
    and classes.started_at is not distinct from jobs.started_at
where classes.subject_kind = 'job' and classes.metric = 'bytes'
