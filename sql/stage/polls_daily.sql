-- stage.polls_daily: one row per file system and UTC day of polls
with

poll_ticks as (
    select * from stage.poll_ticks
),

controllers as (
    select
        filesystem,
        count(distinct controller) as controller_count
    from landed.polls
    group by all
),

step_counts as (
    select
        filesystem,
        interval_s,
        count(*) as tick_count
    from poll_ticks
    group by all
),

steps as (
    select
        filesystem,
        interval_s
    from step_counts
    qualify row_number() over (partition by filesystem order by tick_count desc, interval_s) = 1
),

phase_counts as (
    select
        poll_ticks.filesystem,
        (epoch_us(poll_ticks.polled_at) % round(steps.interval_s * 1e6)::bigint) / 1e6 as grid_phase_s,
        count(*) as tick_count
    from poll_ticks
    inner join steps using (filesystem)
    group by all
),

-- where in the step the polls fall, so that a grid can lie on them
phases as (
    select
        filesystem,
        grid_phase_s
    from phase_counts
    qualify row_number() over (partition by filesystem order by tick_count desc, grid_phase_s) = 1
),

instants as (
    select
        filesystem,
        polled_at,
        sum((coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) / interval_s) as bytes_per_s
    from poll_ticks
    group by all
),

peaks as (
    select
        filesystem,
        max(bytes_per_s) as peak_bytes_per_s
    from instants
    group by all
),

totals as (
    select
        polled_on,
        filesystem,
        sum(controller_count)::bigint as poll_count,
        sum(gap_poll_count)::bigint as gap_poll_count,
        sum(duplicate_poll_count)::bigint as duplicate_poll_count,
        sum(conflicting_poll_count)::bigint as conflicting_poll_count,
        sum(implausible_poll_count)::bigint as implausible_poll_count,
        sum(read_bytes)::bigint as read_bytes,
        sum(written_bytes)::bigint as written_bytes
    from poll_ticks
    group by all
),

spans as (
    select
        polled_on,
        filesystem,
        min(epoch_us(polled_at) % 86400000000) / 1e6 as first_s,
        max(epoch_us(polled_at) % 86400000000) / 1e6 as last_s
    from poll_ticks
    where controller_count > 0
    group by all
),

-- polls before the first and after the last one, where the data begin (also of one file system) or end on that day
outside as (
    select
        spans.polled_on,
        spans.filesystem,
        (
            if(
                spans.polled_on = $first_polled_on
                or list_contains($beginning_filesystems::varchar[], spans.filesystem),
                floor(spans.first_s / steps.interval_s),
                0
            )
            + if(spans.polled_on = $last_polled_on, ceil((86400 - spans.last_s) / steps.interval_s) - 1, 0)
        )::bigint as outside_count
    from spans
    inner join steps using (filesystem)
),

expected as (
    select
        totals.polled_on,
        totals.filesystem,
        controllers.controller_count,
        greatest(1, round(86400 / steps.interval_s)::bigint - coalesce(outside.outside_count, 0))
        * controllers.controller_count as expected_poll_count,
        coalesce(outside.outside_count, 0) > 0 as is_partial_day
    from totals
    inner join controllers using (filesystem)
    inner join steps using (filesystem)
    left join outside using (polled_on, filesystem)
)

select
    totals.polled_on,
    totals.filesystem,
    steps.interval_s,
    phases.grid_phase_s,
    expected.controller_count,
    totals.poll_count,
    expected.expected_poll_count,
    greatest(0, 1 - totals.poll_count / expected.expected_poll_count) as missing_ratio,
    expected.is_partial_day,
    totals.gap_poll_count,
    totals.duplicate_poll_count,
    totals.conflicting_poll_count,
    totals.implausible_poll_count,
    totals.read_bytes,
    totals.written_bytes,
    peaks.peak_bytes_per_s
from totals
inner join expected using (polled_on, filesystem)
inner join steps using (filesystem)
inner join phases using (filesystem)
inner join peaks using (filesystem)
order by totals.filesystem
