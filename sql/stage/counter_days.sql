-- stage.counter_days: one row per file system and UTC day on which entries of jobs were read
with

scrapes as (
    select * from stage.timed_scrapes
    where is_job_scrape
),

counter_targets as (
    select * from stage.counter_targets
),

counter_rises as (
    select * from stage.counter_rises
    where job_key is not null
),

counter_gaps as (
    select * from stage.counter_gaps
    where is_job_scrape
),

counted_jobs as (
    select * from stage.counted_jobs
),

step_counts as (
    select
        filesystem,
        epoch_us(scraped_at) - epoch_us(previous_at) as step_us,
        count(*) as scrape_count
    from scrapes
    where previous_at is not null
    group by all
),

-- file systems of which two scrapes of one target are known
steps as (
    select
        filesystem,
        step_us
    from step_counts
    qualify row_number() over (partition by filesystem order by scrape_count desc, step_us) = 1
),

phase_counts as (
    select
        scrapes.filesystem,
        epoch_us(scrapes.scraped_at) % steps.step_us as phase_us,
        count(*) as scrape_count
    from scrapes
    inner join steps using (filesystem)
    group by all
),

-- where in the step the scrapes fall
phases as (
    select
        filesystem,
        phase_us
    from phase_counts
    qualify row_number() over (partition by filesystem order by scrape_count desc, phase_us) = 1
),

covered as (
    select
        filesystem,
        count(distinct row(component, target)) as target_count,
        count(*) as scrape_count,
        min(least(previous_at, scraped_at)) as counted_from_at,
        max(scraped_at) as counted_until_at
    from scrapes
    group by filesystem
),

read_targets as (
    select
        filesystem,
        sum(sample_count)::bigint as sample_count,
        sum(other_sample_count)::bigint as other_sample_count,
        sum(duplicate_sample_count)::bigint as duplicate_sample_count,
        sum(conflicting_sample_count)::bigint as conflicting_sample_count,
        count(*) filter (is_silent) as silent_target_count,
        count(*) filter (is_exceeded) as exceeded_target_count
    from counter_targets
    group by filesystem
),

moved as (
    select
        filesystem,
        count(flag) as unknown_rise_count,
        sum(read_bytes)::bigint as read_bytes,
        sum(written_bytes)::bigint as written_bytes
    from counter_rises
    group by filesystem
),

lost as (
    select
        filesystem,
        count(*) as gap_count
    from counter_gaps
    group by filesystem
),

job_keys as (
    select
        filesystem,
        count(*) as job_key_count
    from counted_jobs
    group by filesystem
),

-- the data begin within the first day of coverage and end within the last
spans as (
    select
        filesystem,
        list_min($days::date[]) as counted_on,
        timezone('UTC', counted_on::timestamp) as midnight_at,
        case
            when counted_on = $first_polled_on::date then greatest(counted_from_at, midnight_at) else midnight_at
        end as from_at,
        case
            when counted_on = $last_polled_on::date then counted_until_at else midnight_at + interval 1 day
        end as until_at
    from covered
),

expected as (
    select
        spans.filesystem,
        spans.counted_on,
        greatest(
            round_even(((epoch_us(spans.until_at) - epoch_us(spans.from_at)) / 1e6) / (steps.step_us / 1e6), 0)::bigint,
            1
        )
        * covered.target_count as expected_scrape_count
    from spans
    inner join steps using (filesystem)
    inner join covered using (filesystem)
)

select
    expected.counted_on,
    expected.filesystem,
    steps.step_us / 1e6 as interval_s,
    phases.phase_us / 1e6 as grid_phase_s,
    covered.target_count,
    covered.scrape_count,
    expected.expected_scrape_count,
    greatest(0, 1 - covered.scrape_count / expected.expected_scrape_count) as missing_ratio,
    coalesce(job_keys.job_key_count, 0) as job_key_count,
    coalesce(read_targets.sample_count, 0) as sample_count,
    coalesce(read_targets.other_sample_count, 0) as other_sample_count,
    coalesce(read_targets.duplicate_sample_count, 0) as duplicate_sample_count,
    coalesce(read_targets.conflicting_sample_count, 0) as conflicting_sample_count,
    coalesce(moved.unknown_rise_count, 0) as unknown_rise_count,
    coalesce(lost.gap_count, 0) as gap_count,
    coalesce(read_targets.silent_target_count, 0) as silent_target_count,
    coalesce(read_targets.exceeded_target_count, 0) as exceeded_target_count,
    coalesce(moved.read_bytes, 0) as read_bytes,
    coalesce(moved.written_bytes, 0) as written_bytes,
    covered.counted_from_at,
    covered.counted_until_at
from expected
inner join covered using (filesystem)
inner join steps using (filesystem)
inner join phases using (filesystem)
left join read_targets using (filesystem)
left join moved using (filesystem)
left join lost using (filesystem)
left join job_keys using (filesystem)
order by expected.filesystem
