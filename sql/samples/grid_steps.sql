-- samples.grid_steps: one row per file system, grid and step needed by a run, including gaps
with

runs as (
    select * from samples.runs
    where list_contains($days::date[], ended_on) and step_us is not null
),

filesystem_rates as (
    select * from stage.filesystem_rates
),

grids as (
    select
        filesystem,
        step_us,
        phase_us,
        max(expected_controller_count) as expected_controller_count,
        min(first_step) as first_step,
        max(last_step) as last_step
    from runs
    group by all
),

-- a poll that covers several steps, or parts of them, is divided among them by time; those that no run needs are
-- left out here, since a poll after a long gap covers very many steps
shares as (
    select
        grids.filesystem,
        grids.step_us,
        grids.phase_us,
        filesystem_rates.read_bytes,
        filesystem_rates.written_bytes,
        filesystem_rates.read_count,
        filesystem_rates.write_count,
        filesystem_rates.controller_count,
        round(filesystem_rates.interval_s * 1e6)::bigint as interval_us,
        epoch_us(filesystem_rates.polled_at) - round(filesystem_rates.interval_s * 1e6)::bigint
        - grids.phase_us as left_us,
        unnest(range(
            greatest(
                grids.first_step,
                (
                    epoch_us(filesystem_rates.polled_at) - round(filesystem_rates.interval_s * 1e6)::bigint
                    - grids.phase_us
                ) // grids.step_us
                + 1
            ),
            least(
                grids.last_step,
                (epoch_us(filesystem_rates.polled_at) - grids.phase_us + grids.step_us - 1) // grids.step_us
            )
            + 1
        )) as step
    from filesystem_rates
    inner join grids
        on filesystem_rates.filesystem = grids.filesystem
        and epoch_us(filesystem_rates.polled_at) > (grids.first_step - 1) * grids.step_us + grids.phase_us
        and epoch_us(filesystem_rates.polled_at) - round(filesystem_rates.interval_s * 1e6)::bigint
        < grids.last_step * grids.step_us + grids.phase_us
),

cut as (
    select
        *,
        greatest(0, least(interval_us, (step - 1) * step_us - left_us)) as from_us,
        greatest(0, least(interval_us, step * step_us - left_us)) as to_us
    from shares
),

-- differences of a rounded running total: no byte or operation is lost between two steps
steps as (
    select
        filesystem,
        step_us,
        phase_us,
        step,
        sum(
            round(read_bytes * (to_us / interval_us))::bigint - round(read_bytes * (from_us / interval_us))::bigint
        )::bigint as read_bytes,
        sum(
            round(written_bytes * (to_us / interval_us))::bigint
            - round(written_bytes * (from_us / interval_us))::bigint
        )::bigint as written_bytes,
        sum(
            round(read_count * (to_us / interval_us))::bigint - round(read_count * (from_us / interval_us))::bigint
        )::bigint as read_count,
        sum(
            round(write_count * (to_us / interval_us))::bigint - round(write_count * (from_us / interval_us))::bigint
        )::bigint as write_count,
        sum(controller_count * (to_us - from_us))::bigint as reported_us
    from cut
    group by all
),

every_step as (
    select
        filesystem,
        step_us,
        phase_us,
        expected_controller_count,
        first_step,
        unnest(range(first_step, last_step + 1)) as step
    from grids
)

select
    every_step.filesystem,
    every_step.step_us,
    every_step.phase_us,
    every_step.step,
    steps.read_bytes / (every_step.step_us / 1e6) as read_bytes_per_s,
    steps.written_bytes / (every_step.step_us / 1e6) as write_bytes_per_s,
    steps.read_count / (every_step.step_us / 1e6) as read_operations_per_s,
    steps.write_count / (every_step.step_us / 1e6) as write_operations_per_s,
    least(
        1, coalesce(steps.reported_us, 0) / (every_step.expected_controller_count * every_step.step_us)
    ) as reported_ratio
from every_step
left join steps using (filesystem, step_us, phase_us, step)
order by every_step.filesystem, every_step.step_us, every_step.phase_us, every_step.step
