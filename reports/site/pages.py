"""Declare every page of the report: what its figures show, what that means, and the query that gives the same numbers.

The shell of a page, the sentence under each figure, the navigation and the tests all use these declarations. A query
may contain `$names`. The page replaces them by SQL literals, and shows the query as a shell command.
"""

from __future__ import annotations

from iosig.reports.site.figures import Figure, Page

#: current load of the file systems, the basis of recommendations
_LOAD = """
    select filesystem, sum(coalesce(read_bytes, 0) + coalesce(written_bytes,
        0)) / 600 as bytes_per_s from filesystem_rates
    where polled_at > (select max(polled_at) - interval 10 minute from filesystem_rates)
    group by all order by bytes_per_s desc
"""


NIGHT = Page(
    name="index",
    title="Night",
    purpose="Results of the last nightly run, most important first.",
    figures=(
        Figure(
            "numbers",
            "The last day in numbers",
            "Traffic of the last polled day, its attributed share, and the active users and applications.",
            "If the attributed share falls, polls are missing, or a new application is active.",
            """
            select polled_on, sum(measured_bytes) as measured_bytes, sum(attributed_bytes) as attributed_bytes
            from attribution_daily where polled_on <= (select max(polled_at - interval 1 microsecond)::date from
            filesystem_rates) group by polled_on order by polled_on desc limit 1
            """,
        ),
        Figure(
            "owners",
            "Traffic by application",
            "Traffic of the busiest file system on the last day, and the part that signatures attribute to "
            "applications. Unattributed traffic has no color.",
            "If storage was slow, this shows which applications caused the load.",
            """
            select direction, minute_at, application_id, sum(attributed_bytes) as attributed_bytes from attributed_io
            where filesystem = (select filesystem from polls_daily
            where polled_on = (select max(polled_at - interval 1 microsecond)::date from filesystem_rates)
            order by coalesce(read_bytes, 0) + coalesce(written_bytes, 0) desc limit 1)
            and minute_at > (select max(polled_at - interval 1 microsecond)::date from filesystem_rates)
            group by all order by minute_at
            """,
        ),
        Figure(
            "clock",
            "Checkpoint clock",
            "Period and bytes per period of each periodic application. Lines connect the pairs whose bursts "
            "overlapped most in the last day.",
            "Applications whose bursts overlap often slow each other down. Start one of them at another time.",
            """
            select subject_id, filesystem, period_s, bytes_per_period, burst_width_s from periods
            where subject_kind = 'application' and is_default and outcome = 'periodic' and direction = 'write'
            order by bytes_per_period desc
            """,
        ),
        Figure(
            "changed",
            "Applications that changed",
            "Signatures that differ from those of the previous release by more than the thresholds.",
            "A program that writes more than before, or at other times, affects other jobs.",
            """
            select application_id, filesystem, direction, change_correlation, relative_volume_change, added_burst_count,
            removed_burst_count from signatures where is_default and is_changed order by change_correlation nulls first
            """,
        ),
        Figure(
            "contention",
            "Busiest hours",
            "The hours of the last day with most traffic, and the applications with bursts at these times.",
            "Applications with simultaneous bursts wait for each other. Start one of them later.",
            """
            select filesystem, date_trunc('hour', minute_at - interval 1 second) as hour_at,
            sum(attributed_bytes) as attributed_bytes, count(distinct application_id) as application_count
            from attributed_io where minute_at > (select max(polled_at - interval 1 microsecond)::date from
            filesystem_rates) group by all order by attributed_bytes desc limit 10
            """,
        ),
        Figure(
            "slowed",
            "Slowed runs",
            "Runs whose bursts were slowed on the last day, with their delay and the application with most "
            "interfering bytes. Do not rely on an expected correlation below 0.5: the signature may be wrong.",
            "The interfering traffic is measured, but does not prove the cause of the delay.",
            """
            select application_id, job_id, filesystem, sum(delay_s) as delay_s, count(*) as burst_count,
            arg_max(top_interferer_application_id, top_interferer_bytes) as most_there from slowdowns where outcome =
            'slowed' and burst_started_at::date = (select max(polled_at - interval 1 microsecond)::date from
            filesystem_rates) group by all order by delay_s desc limit 10
            """,
        ),
        Figure(
            "advice",
            "Recommended starts",
            "For the applications with most bytes: the best file system and start delay at the last poll, and the "
            "expected contended bytes without and with this delay. iosig advise gives current advice.",
            "A delay costs one job minutes; contention costs all active jobs time.",
            _LOAD,
        ),
        Figure(
            "missing",
            "Missing data",
            "Refused inputs, missing polls, and failed checks.",
            "Missing data appear in no figure and can be mistaken for an idle system.",
            """
            select filesystem, polled_on, missing_ratio from polls_daily where missing_ratio > 0.01
            and polled_on <= (select max(polled_at - interval 1 microsecond)::date from filesystem_rates) order by
            polled_on desc
            """,
        ),
    ),
)

APPLICATIONS = Page(
    name="applications",
    title="Applications",
    purpose="All applications with a sample set: their I/O without interference, and its reliability.",
    figures=(
        Figure(
            "map",
            "Population map",
            "Applications by bytes per month (all runs) and burstiness (peak rate over mean rate). The size of a "
            "circle is the number of runs, the color is the class.",
            "Applications at the upper right move most in the shortest time, and gain most from advice.",
            """
            select application_id, sum(volume_bytes * run_count) as all_bytes,
            arg_max(peak_bytes_per_s * duration_s / volume_bytes, volume_bytes * run_count) as peak_over_mean
            from signatures inner join (from jobs select filesystem, count(*) as run_count, application_id
            where is_application_run and ended_at is not null group by all) as runs using (application_id)
            where is_default and outcome = 'extracted' and volume_bytes > 0
            and coalesce(runs.filesystem, signatures.filesystem) = signatures.filesystem group by all
            """,
        ),
        Figure(
            "list",
            "All applications",
            "One row per application, file system and direction. The small curve is the signature.",
            "Sort by a column to find the largest, the periodic, and the unreliable ones.",
            """
            select application_id, filesystem, direction, outcome, sample_count, volume_bytes, peak_bytes_per_s,
            burst_count, expected_correlation, is_changed from signatures where is_default order by volume_bytes desc
            nulls last
            """,
        ),
    ),
    libraries=("tabulator",),
)

APPLICATION = Page(
    name="application",
    title="Application",
    purpose="The traffic that storage saw during the application's runs, and the application's own part.",
    figures=(
        Figure(
            "signature",
            "Samples and signature",
            "Top: traffic of the file system during each run, including other jobs, or of the run alone if it was "
            "counted or traced. Bottom: the application's own rate, with its expected range.",
            "Bursts that appear in all runs belong to the application; bursts of a single run are interference.",
            """
            select offset_s, bytes_per_s, low_bytes_per_s, high_bytes_per_s from default_signature_points
            where application_id = $application_id and filesystem = $filesystem and direction = $direction
            order by offset_s
            """,
        ),
        Figure(
            "operations",
            "Operations",
            "The application's own operations per second, as storage servers count requests, with their expected "
            "range, class and period. Absent if no poll has operations.",
            "Small requests load servers more than their bytes suggest.",
            """
            select offset_s, operations_per_s, low_operations_per_s, high_operations_per_s from signature_points
            where metric = 'operations' and application_id = $application_id and filesystem = $filesystem
            and direction = $direction order by offset_s
            """,
        ),
        Figure(
            "bursts",
            "Bursts",
            "Start, end and bytes of each burst, and the share of runs that have it.",
            "A burst that appears in few runs may be interference.",
            """
            select burst, start_s, peak_s, end_s, volume_bytes, support_ratio from default_signature_bursts
            where application_id = $application_id and filesystem = $filesystem and direction = $direction
            order by burst
            """,
        ),
        Figure(
            "expected_correlation",
            "Reliability",
            "Method, runs used, expected correlation, class and period of the signature, and its comparison with "
            "traced runs, if available.",
            "Below an expected correlation of 0.5, inspect the runs before you rely on the signature.",
            """
            select method, outcome, expected_correlation, sample_count, used_sample_count, background_bytes_per_s from
            signatures where is_default and application_id = $application_id and filesystem = $filesystem
            and direction = $direction
            """,
        ),
        Figure(
            "contention",
            "Mutual slowdowns",
            "Applications that slowed this one most, and those it slowed, with total delays in this release.",
            "Start applications that slow each other down at different times, or on different file systems.",
            """
            select application_id, top_interferer_application_id, filesystem, sum(delay_s) as delay_s,
            count(distinct job_id) as run_count, count(*) as burst_count from slowdowns where outcome = 'slowed'
            and $application_id in (application_id, top_interferer_application_id) group by all order by delay_s desc
            """,
        ),
        Figure(
            "advice",
            "Recommended start",
            "File systems, best first, at the last poll: the best start delay, and the expected contended bytes "
            "without and with it. The query returns the load used.",
            "Contention slows the bursts of this application and of others.",
            _LOAD,
        ),
        Figure(
            "history",
            "History",
            "Volume, bursts and expected correlation of the signature in each kept release. Use --release ID to "
            "query another release.",
            "A step shows when the program, its input or the machine changed.",
            """
            select volume_bytes, burst_count, expected_correlation, change_correlation, relative_volume_change from
            signatures where is_default and application_id = $application_id and filesystem = $filesystem
            and direction = $direction
            """,
        ),
        Figure(
            "runs",
            "Runs in the set",
            "The latest runs, with the bytes of their samples (total traffic, or the run's own if counted or traced). "
            "Runs excluded from the signature are marked.",
            "A run longer than the others was disturbed, or behaved differently.",
            """
            select cluster, job_id, started_at, duration_s, sample_bytes, missing_ratio, source from sample_sets
            where application_id = $application_id and filesystem = $filesystem and direction = $direction
            and metric = 'bytes' order by started_at desc
            """,
        ),
    ),
    libraries=("uplot",),
    is_in_navigation=False,
)

RUN = Page(
    name="run",
    title="Run",
    purpose="One run of a job: the traffic of the file system during the run, and the part that may be the run's own.",
    figures=(
        Figure(
            "findings",
            "Findings",
            "I/O problems found in the run's traces, most severe first, and layers, summed over all ranks. iosig "
            "job also reports single requests and files.",
            "Problems that take a large share of the run are worth a change; notes are not.",
            """
            select module, outcome, read_bytes, written_bytes, read_count, write_count, read_time_s, write_time_s,
            metadata_time_s, trace_counters.counters from trace_counters
            inner join trace_jobs using (trace_id) where trace_jobs.cluster = $cluster
            and trace_jobs.job_id = $job_id and trace_jobs.job_started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "ranks",
            "Ranks and time",
            "Bytes by rank and time, from the tracer's heat map, with sums over ranks (top) and over time (side).",
            "A row longer than the others is a rank that the others wait for. Empty rows had no I/O.",
            """
            select trace_heatmaps.module, rank, direction, interval_s, bin_bytes from trace_heatmaps
            inner join trace_jobs using (trace_id) where trace_jobs.cluster = $cluster
            and trace_jobs.job_id = $job_id and trace_jobs.job_started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "sample",
            "Traffic during the run",
            "The run's sample (gray) and its application's signature (color), on the same time scale.",
            "Bursts that the signature lacks are interference, or the run behaved differently.",
            """
            select filesystem, direction, grid_started_at, interval_s, sample_bytes_per_s from samples
            where cluster = $cluster and job_id = $job_id and started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "io",
            "Bytes of the run, and of all jobs during it",
            "The best estimate of the run's bytes on each file system, with its source and range, the bytes "
            "recorded by counters or a trace, and the bytes of all jobs.",
            "Counted and traced bytes are the run's own. Attributed bytes are estimated from shared traffic.",
            """
            select filesystem, direction, estimated_bytes, estimated_low_bytes, estimated_high_bytes, estimate_source,
            outcome, own_bytes, filesystem_bytes from job_io
            where cluster = $cluster and job_id = $job_id and started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "slowed",
            "Slowed bursts",
            "The slowed bursts of this run, with their delay and the application with most interfering bytes.",
            "If a run took longer than usual, this is the part caused by contention.",
            """
            select filesystem, direction, burst, burst_expected_at, start_delay_s, delay_s, delay_low_s, delay_high_s,
            top_interferer_application_id, top_interferer_bytes, unattributed_bytes from slowdowns where outcome =
            'slowed' and cluster = $cluster and job_id = $job_id and started_at = $started_at::timestamptz order by
            burst
            """,
        ),
        Figure(
            "advice",
            "Recommended start of the next run",
            "For a run of the same application at the last poll: file systems, best first, the best start delay, "
            "and the expected contended bytes without and with it. The query returns the load used.",
            "The same interference may affect the next run. A short delay may save more time.",
            _LOAD,
        ),
        Figure(
            "neighbors",
            "Neighbors",
            "Runs that used the same file system at the same time, by decreasing bytes.",
            "Concurrent runs may explain why a run took longer than usual.",
            """
            select others.job_id, others.user, others.application, others.node_count from jobs as own
            inner join jobs as others on others.started_at < own.ended_at and others.ended_at > own.started_at
            where own.cluster = $cluster and own.job_id = $job_id and own.started_at = $started_at::timestamptz
            and others.is_application_run and others.job_id <> own.job_id
            """,
        ),
    ),
    is_in_navigation=False,
)

FILESYSTEM = Page(
    name="filesystem",
    title="File system",
    purpose="Traffic of each file system by minute and day, and its jobs.",
    figures=(
        Figure(
            "calendar",
            "Minutes and days",
            "Each row is a day, each column a minute (UTC). Stronger color means more traffic, on a log scale. "
            "Minutes without polls are hatched.",
            "Vertical stripes are daily routines. A single strong spot is worth an investigation.",
            """
            select polled_at, interval_s, read_bytes, written_bytes from filesystem_rates where filesystem = $filesystem
            order by polled_at
            """,
        ),
        Figure(
            "day",
            "One day",
            "Traffic in steps of five minutes, and the part attributed to applications. Gray is unattributed.",
            "Unattributed traffic comes from programs without a signature, or from transfers outside the scheduler.",
            """
            select application_id, minute_at, sum(attributed_bytes) as attributed_bytes from attributed_io
            where filesystem = $filesystem and minute_at::date = $day::date group by all order by minute_at
            """,
        ),
        Figure(
            "there",
            "Jobs of the day",
            "Runs of that day, with their attributed bytes if known.",
            "Start here if users report that the file system was slow.",
            """
            select job_id, application_id, sum(attributed_bytes) as attributed_bytes from attributed_io
            where filesystem = $filesystem and minute_at::date = $day::date group by all order by attributed_bytes desc
            """,
        ),
        Figure(
            "slowed",
            "Slowed runs",
            "Runs whose bursts were slowed on that day, with their delay and the application with most interfering "
            "bytes. Do not rely on an expected correlation below 0.5: the signature may be wrong.",
            "The delay is the cost of interference. If it adds up, start one of the two jobs at another time.",
            """
            select application_id, job_id, sum(delay_s) as delay_s, count(*) as burst_count,
            arg_max(top_interferer_application_id, top_interferer_bytes) as most_there from slowdowns where outcome =
            'slowed' and filesystem = $filesystem and burst_started_at::date = $day::date group by all order by delay_s
            desc
            """,
        ),
        Figure(
            "advice",
            "Recommended delays",
            "For the applications with most bytes: the expected contended bytes if they start here at the last "
            "poll, and after the best delay. The query returns the load used.",
            "A job that starts here competes with the active jobs.",
            f"from ({_LOAD}) where filesystem = $filesystem",
        ),
    ),
    libraries=("tabulator",),
)

QUALITY = Page(
    name="quality",
    title="Quality",
    purpose="Completeness of the inputs, failed checks, and refused rows.",
    figures=(
        Figure(
            "days",
            "Days of polls",
            "One cell per day and file system, by the share of missing polls.",
            "Signatures and shares of incomplete days are based on less data than they seem to.",
            """
            select filesystem, polled_on, missing_ratio, implausible_poll_count, conflicting_poll_count from polls_daily
            order by filesystem, polled_on
            """,
        ),
        Figure(
            "failures",
            "Failed checks",
            "Failed checks of this release, and quarantined rows.",
            "A critical failure stops a release; a warning needs attention.",
            "select severity, table_name, expectation, observed from quality where not success and severity <> 'info'",
        ),
        Figure(
            "inference",
            "Inferred classes and periods",
            "Agreement of classes and periods inferred from signatures with measured ones. A period agrees if it "
            "differs by less than 10 %; a harmonic does not.",
            "This is an upper bound of the accuracy for runs that were not measured: runs used for the signature "
            "are not held out.",
            """
            select
                basis,
                not is_training_run as is_held_out,
                count(*) as run_count,
                count(is_same_class) as class_count,
                avg(is_same_class::int) as class_agreement_ratio,
                count(period_agreement) as period_count,
                avg((period_agreement in ('same', 'aperiodic'))::int) as period_agreement_ratio,
                count(*) filter (period_agreement = 'harmonic') as harmonic_count
            from inference_checks
            group by all
            order by all
            """,
        ),
        Figure(
            "rejects",
            "Refused inputs",
            "Rows and files that could not be read, with reason and remedy.",
            "Refused data are in no number of these pages.",
            "select source_file, line, reason, remedy from rejects order by source_file, line",
        ),
    ),
)

CHANGES = Page(
    name="changes",
    title="Changes",
    purpose="Differences from the previous release.",
    figures=(
        Figure(
            "volume",
            "Volume",
            "Signatures with the largest differences in bytes per run. Use --release ID to query the previous release.",
            "A program that moves twice as much takes twice the share of the file system's bandwidth.",
            "select application_id, filesystem, direction, volume_bytes, relative_volume_change from signatures "
            "where is_default and outcome = 'extracted' order by abs(relative_volume_change) desc nulls last",
        ),
        Figure(
            "bursts",
            "Bursts",
            "Signatures with a different number of bursts.",
            "A different number means that the program or its input changed.",
            "select application_id, filesystem, direction, burst_count, added_burst_count, removed_burst_count "
            "from signatures where is_default and outcome = 'extracted'",
        ),
        Figure(
            "period",
            "Period",
            "Applications with a changed, new or lost period.",
            "Schedulers that separate bursts rely on the period.",
            "select subject_id, filesystem, direction, period_s, period_error_s from periods "
            "where subject_kind = 'application' and is_default and outcome = 'periodic'",
        ),
    ),
)

POPULATION = Page(
    name="population",
    title="Population",
    purpose="I/O of all runs: classes, volumes and periods.",
    figures=(
        Figure(
            "classes",
            "Classes over time",
            "Runs by day of their end, and by the part of the run in which they do their I/O.",
            "A shift means that the mix of programs changed. Classes of runs that were not measured are inferred "
            "(`basis`).",
            "select ended_on, direction, label, count(*) as run_count from classes where subject_kind = 'job' "
            "and metric = 'bytes' and outcome = 'classified' group by all order by all",
        ),
        Figure(
            "volumes",
            "Runs by volume",
            "Number of runs by volume, using the best estimate.",
            "A few large runs usually move most bytes. Look at those first.",
            """
            select direction, floor(log2(estimated_bytes)) as power, count(*) as run_count from job_io
            semi join jobs using (cluster, job_id, started_at)
            where estimated_bytes > 0 group by all order by all
            """,
        ),
        Figure(
            "periods",
            "Periods of runs",
            "Measured and inferred periods of runs with even, periodic I/O.",
            "Checkpoints of many runs with the same period overlap repeatedly.",
            """
            select direction, round(period_s) as period_s, count(*) as run_count from periods
            inner join classes using (subject_kind, cluster, subject_id, started_at, filesystem, direction, metric)
            where subject_kind = 'job' and is_default and periods.outcome = 'periodic'
            and label in ('UNIFORM', 'OTHER') group by all order by all
            """,
        ),
        Figure(
            "shares",
            "Shares of classes",
            "Share of runs and of bytes by class, and the periodic part.",
            "White et al. (PEARC'18, Table 2) report the same for their site. iosig population prints more "
            "statistics of yours.",
            "select direction, label, count(*) as run_count from classes "
            "where subject_kind in ('job', 'series') and metric = 'bytes' and outcome = 'classified' "
            "group by all order by all",
        ),
        Figure(
            "groups",
            "Applications by bytes",
            "Applications with most bytes, over all users and sizes, with their most frequent class.",
            "If the class is stable, one signature represents many runs.",
            """
            select application, sum(estimated_bytes) as bytes from job_io
            inner join jobs using (cluster, job_id, started_at) group by all order by bytes desc nulls last
            """,
        ),
    ),
)

TABLES = Page(
    name="tables",
    title="Tables",
    purpose="All tables of the release, the meaning of their columns, and example queries.",
    figures=(
        Figure(
            "tables",
            "Tables",
            "Tables with their number of rows in this release, and columns with units.",
            "All pages are computed from these tables. Query them for anything else.",
            "show tables",
        ),
    ),
)

LINEAGE = Page(
    name="lineage",
    title="Lineage",
    purpose="Lineage of each table: source tables, columns, and the step that computes it.",
    figures=(
        Figure(
            "steps",
            "Steps",
            "An arrow leads from a step to one that reads its tables. Select a step to see what it depends on, what "
            "depends on it, and its tables.",
            "After a change of a setting or an SQL model, the downstream steps give different answers. iosig run "
            "--select STEP+ recomputes them.",
            "select distinct table_name from quality order by table_name",
        ),
        Figure(
            "lineage",
            "Tables",
            "Upstream and downstream tables of each table, and source columns if SQL computes it. iosig lineage "
            "TABLE prints the same.",
            "Use it to trace a suspicious number to its inputs.",
            "show tables",
        ),
    ),
)

#: all pages, in the order of the navigation
PAGES: tuple[Page, ...] = (
    NIGHT, APPLICATIONS, APPLICATION, RUN, FILESYSTEM, POPULATION, QUALITY, CHANGES, TABLES, LINEAGE,
)  # fmt: skip


def page(name: str) -> Page:
    """Look up a page declaration by name."""
    return next(page for page in PAGES if page.name == name)
