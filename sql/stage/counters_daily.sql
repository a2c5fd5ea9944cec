-- stage.counters_daily: one row per file system and UTC day with readings of jobs' entries
with

scrapes as (
    select * from stage.timed_scrapes
    where is_job_scrape
),

counter_targets as (
    select * from stage.counter_targets
),

counter_deltas as (
    select * from stage.counter_deltas
    where job_key is not null
),

counter_gaps as (
    select * from stage.counter_gaps
    where is_job_scrape
),

counter_job_totals as (
    select * from stage.counter_job_totals
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
        min(least(previous_at, scraped_at)) as coverage_started_at,
        max(scraped_at) as coverage_ended_at
    from scrapes
    group by filesystem
),

read_targets as (
    select
        filesystem,
        sum(sample_count)::bigint as sample_count,
        sum(redundant_sample_count)::bigint as redundant_sample_count,
        sum(duplicate_sample_count)::bigint as duplicate_sample_count,
        sum(conflicting_sample_count)::bigint as conflicting_sample_count,
        count(*) filter (is_silent) as silent_target_count,
        count(*) filter (is_overcounted) as overcounted_target_count
    from counter_targets
    group by filesystem
),

volumes as (
    select
        filesystem,
        count(flag) as unknown_delta_count,
        sum(read_bytes)::bigint as read_bytes,
        sum(written_bytes)::bigint as written_bytes
    from counter_deltas
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
    from counter_job_totals
    group by filesystem
),

-- the data begin within the first day of coverage and end within the last
spans as (
    select
        filesystem,
        list_min($days::date[]) as scraped_on,
        timezone('UTC', scraped_on::timestamp) as midnight_at,
        case
            when scraped_on = $first_polled_on::date then greatest(coverage_started_at, midnight_at) else midnight_at
        end as interval_started_at,
        case
            when scraped_on = $last_polled_on::date then coverage_ended_at else midnight_at + interval 1 day
        end as interval_ended_at
    from covered
),

expected as (
    select
        spans.filesystem,
        spans.scraped_on,
        greatest(
            round_even(
                ((epoch_us(spans.interval_ended_at) - epoch_us(spans.interval_started_at)) / 1e6)
                / (steps.step_us / 1e6),
                0
            )::bigint,
            1
        )
        * covered.target_count as expected_scrape_count
    from spans
    inner join steps using (filesystem)
    inner join covered using (filesystem)
)

select
    expected.scraped_on,
    expected.filesystem,
    steps.step_us / 1e6 as interval_s,
    phases.phase_us / 1e6 as grid_phase_s,
    covered.target_count,
    covered.scrape_count,
    expected.expected_scrape_count,
    greatest(0, 1 - covered.scrape_count / expected.expected_scrape_count) as missing_ratio,
    coalesce(job_keys.job_key_count, 0) as job_key_count,
    coalesce(read_targets.sample_count, 0) as sample_count,
    coalesce(read_targets.redundant_sample_count, 0) as redundant_sample_count,
    coalesce(read_targets.duplicate_sample_count, 0) as duplicate_sample_count,
    coalesce(read_targets.conflicting_sample_count, 0) as conflicting_sample_count,
    coalesce(volumes.unknown_delta_count, 0) as unknown_delta_count,
    coalesce(lost.gap_count, 0) as gap_count,
    coalesce(read_targets.silent_target_count, 0) as silent_target_count,
    coalesce(read_targets.overcounted_target_count, 0) as overcounted_target_count,
    coalesce(volumes.read_bytes, 0) as read_bytes,
    coalesce(volumes.written_bytes, 0) as written_bytes,
    covered.coverage_started_at,
    covered.coverage_ended_at
from expected
inner join covered using (filesystem)
inner join steps using (filesystem)
inner join phases using (filesystem)
left join read_targets using (filesystem)
left join volumes using (filesystem)
left join lost using (filesystem)
left join job_keys using (filesystem)
order by expected.filesystem
