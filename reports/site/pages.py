"""Every page of the report, declared once: what it shows, what that means, and the query that gives the same numbers.

A page's shell, the sentence under each figure, the navigation and the tests all come from here. A query may hold
`$names`; on the page they stand filled in, as SQL writes texts, in a line that a shell takes as it is.
"""

from __future__ import annotations

from iosig.reports.site.figures import Figure, Page

#: Current load of the file systems, the basis of recommendations.
_LOAD = """
    select filesystem, sum(coalesce(read_bytes, 0) + coalesce(written_bytes,
        0)) / 600 as bytes_per_s from filesystem_rates
    where polled_at > (select max(polled_at) - interval 10 minute from filesystem_rates)
    group by all order by bytes_per_s desc
"""


NIGHT = Page(
    name="index",
    title="Night",
    purpose="What the last night found, and what to look at first.",
    figures=(
        Figure(
            "numbers",
            "The day in five numbers",
            "What storage moved on the last day that was polled, how much of it has an owner, and who runs.",
            "A share that falls says that polls are missing or that somebody new is there.",
            """
            select polled_on, sum(measured_bytes) as measured_bytes, sum(attributed_bytes) as attributed_bytes
            from attribution_daily where polled_on <= (select max(polled_at - interval 1 microsecond)::date from
            filesystem_rates) group by polled_on order by polled_on desc limit 1
            """,
        ),
        Figure(
            "owners",
            "Whose bytes they were",
            "What the file system that moved most did on the last day, and which applications' signatures explain it; "
            "what has no colour is nobody's.",
            "It answers what is asked first when storage was slow: who was it.",
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
            "How often each application with a period writes, and how much each time; lines join those whose bursts "
            "met most in the last day.",
            "Two that meet again and again slow each other down; one of them can be started at another time.",
            """
            select subject_id, filesystem, period_s, bytes_per_period, burst_width_s from periods
            where subject_kind = 'application' and is_default and outcome = 'periodic' and direction = 'write'
            order by bytes_per_period desc
            """,
        ),
        Figure(
            "changed",
            "Applications that changed",
            "Signatures that differ from those of the release before by more than the settings allow.",
            "A program that writes more, or at other times, than it used to will be felt by others.",
            """
            select application_id, filesystem, direction, change_correlation, relative_volume_change, added_burst_count,
            removed_burst_count from signatures where is_default and is_changed order by change_correlation nulls first
            """,
        ),
        Figure(
            "contention",
            "Busiest hours",
            "The hours of the last day in which most was moved, how many applications' bursts were in them, and whose.",
            "Where several applications burst at once, each waits for the others; one of them can start later.",
            """
            select filesystem, date_trunc('hour', minute_at - interval 1 second) as hour_at,
            sum(attributed_bytes) as attributed_bytes, count(distinct application_id) as application_count
            from attributed_io where minute_at > (select max(polled_at - interval 1 microsecond)::date from
            filesystem_rates) group by all order by attributed_bytes desc limit 10
            """,
        ),
        Figure(
            "slowed",
            "Who was slowed",
            "Runs whose bursts took longer than alone on the last day, by how much, and whose bytes stood there most "
            "while they were done. Do not rely on an expected correlation below 0.5: the signature may be wrong.",
            "It is those that lost most who will ask; that somebody was there is known, that it is to blame follows "
            "only as far as bytes are.",
            """
            select application_id, job_id, filesystem, sum(delay_s) as delay_s, count(*) as burst_count,
            arg_max(top_interferer_application_id, top_interferer_bytes) as most_there from slowdowns where outcome =
            'slowed' and burst_started_at::date = (select max(polled_at - interval 1 microsecond)::date from
            filesystem_rates) group by all order by delay_s desc limit 10
            """,
        ),
        Figure(
            "advice",
            "Where and when to start",
            "Of the applications that move most: the best file system and delay at the last poll, and how many bytes "
            "are expected to find no room if they start at once and then; iosig advise says it of any, and now.",
            "A start that waits for a gap costs minutes; one that does not costs everybody who is there.",
            _LOAD,
        ),
        Figure(
            "missing",
            "What is missing",
            "Inputs that were refused, polls that never came, and checks that do not hold.",
            "What is not there is in no figure: a gap looks like silence to whoever does not know of it.",
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
    purpose="Every application that has a sample set, what it moves when it is alone, and how far to trust that.",
    figures=(
        Figure(
            "map",
            "Population map",
            "Each application by what it moves in a month, as many as its runs are, and by how bursty it is: its peak "
            "over its mean rate. Circles grow with its runs; colours are classes.",
            "Those at the upper right move most in the shortest time: advice is worth most there.",
            """
            select application_id, sum(volume_bytes * run_count) as all_bytes,
            arg_max(peak_bytes_per_s * duration_s / volume_bytes, volume_bytes * run_count) as peak_over_mean
            from signatures inner join (from jobs select filesystem, count(*) as run_count,
            replace(user, '/', '%2F') || '/' || application || '/' || node_count as application_id
            where is_application_run and ended_at is not null group by all) as runs using (application_id)
            where is_default and outcome = 'extracted' and volume_bytes > 0
            and coalesce(runs.filesystem, signatures.filesystem) = signatures.filesystem group by all
            """,
        ),
        Figure(
            "list",
            "All of them",
            "One row for each application, file system and direction; the small curve is the signature.",
            "Sort by a column to find who moves most, who is periodic, and whose signature is not to be trusted.",
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
    purpose="One application: what storage saw of its runs, and what is its own.",
    figures=(
        Figure(
            "signature",
            "Runs above, signature below",
            "Above, what the file system moved while each run was there, others' traffic included; below, the bytes "
            "per second that are the application's own, with the band that they are expected in.",
            "What all runs have in common stands out; what only one has is somebody else's.",
            """
            select offset_s, bytes_per_s, low_bytes_per_s, high_bytes_per_s from signature_points
            inner join signatures using (application_id, filesystem, direction, method)
            where is_default and application_id = $application_id and filesystem = $filesystem
            and direction = $direction order by offset_s
            """,
        ),
        Figure(
            "bursts",
            "Bursts",
            "When each burst of the signature starts and ends, how much it moves, and how many runs have it.",
            "A burst that few runs bear out may be other traffic.",
            """
            select burst, start_s, peak_s, end_s, signature_bursts.volume_bytes, support_ratio
            from signature_bursts inner join signatures using (application_id, filesystem, direction, method)
            where is_default and application_id = $application_id and filesystem = $filesystem
            and direction = $direction order by burst
            """,
        ),
        Figure(
            "expected_correlation",
            "How far to trust it",
            "What the signature rests on: its method, the runs that were used, the expected correlation, its class and "
            "its period; "
            "and how it compares with traced runs, where there are any.",
            "Below an expected correlation of a half, look at the runs before acting on the signature.",
            """
            select method, outcome, expected_correlation, sample_count, used_sample_count, background_bytes_per_s from
            signatures where is_default and application_id = $application_id and filesystem = $filesystem
            and direction = $direction
            """,
        ),
        Figure(
            "contention",
            "In whose way",
            "Whose bytes stood there most while bursts of its runs took longer than alone, and whose bursts took "
            "longer while its own bytes stood there; by how much in all, over the runs of this release.",
            "Two that slowed each other should start at other times, or on other file systems.",
            """
            select application_id, top_interferer_application_id, filesystem, sum(delay_s) as delay_s,
            count(distinct job_id) as run_count, count(*) as burst_count from slowdowns where outcome = 'slowed'
            and $application_id in (application_id, top_interferer_application_id) group by all order by delay_s desc
            """,
        ),
        Figure(
            "advice",
            "Where and when to start it",
            "File systems from the best to the worst at the last poll: the best delay, and how many bytes are "
            "expected to find no room if it starts at once and then. The query has the load that this rests on.",
            "Where bytes find no room, its bursts take longer, and so do those of others.",
            _LOAD,
        ),
        Figure(
            "history",
            "From release to release",
            "The signature's volume, bursts and trust in each release that is kept; --release ID asks another one.",
            "A step says when the program, its input or the machine changed.",
            """
            select volume_bytes, burst_count, expected_correlation, change_correlation, relative_volume_change from
            signatures where is_default and application_id = $application_id and filesystem = $filesystem
            and direction = $direction
            """,
        ),
        Figure(
            "runs",
            "Runs in the set",
            "The latest runs, each with the bytes of its sample: all traffic meanwhile, or its own where servers "
            "counted by job. Those left out of the signature are marked.",
            "A run that took longer than the others was disturbed, or did something else.",
            """
            select cluster, job_id, started_at, duration_s, sample_bytes, missing_ratio, source from sample_sets
            where application_id = $application_id and filesystem = $filesystem and direction = $direction
            order by started_at desc
            """,
        ),
    ),
    libraries=("uplot",),
    is_in_navigation=False,
)

RUN = Page(
    name="run",
    title="Run",
    purpose="One run of a job: what the file system moved meanwhile, and what of it may be the run's own.",
    figures=(
        Figure(
            "findings",
            "What is wrong with its I/O",
            "By its traces: what rules hold against it, the worst first, with the numbers and what helps; and its "
            "layers, all ranks together. What single requests tell, and in which files it lies, iosig job says.",
            "What takes a large share of the run is worth a change; what is a note is not.",
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
            "What each rank moved over time, by the tracer's heat map of the layer nearest to the program; above it "
            "all ranks together, beside it each rank.",
            "One row that is longer than the others is a rank that all wait for; empty rows did nothing.",
            """
            select trace_heatmaps.module, rank, direction, interval_s, bin_bytes from trace_heatmaps
            inner join trace_jobs using (trace_id) where trace_jobs.cluster = $cluster
            and trace_jobs.job_id = $job_id and trace_jobs.job_started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "sample",
            "What the file system moved meanwhile",
            "The run's sample, in grey, and its application's signature over it, in colour, on one scale of time.",
            "Bursts that the signature does not have are others' traffic, or the run did something else than usual.",
            """
            select filesystem, direction, grid_started_at, interval_s, sample_bytes_per_s from samples
            where cluster = $cluster and job_id = $job_id and started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "io",
            "Bytes of the run, and of all jobs meanwhile",
            "The best estimate of what the run moved on each file system, with its source and range, beside what its "
            "own counters or trace recorded and what the file system moved for all jobs.",
            "Counted and traced bytes are the run's own. Attributed bytes are estimated from shared traffic.",
            """
            select filesystem, direction, estimated_bytes, estimated_low_bytes, estimated_high_bytes, estimate_source,
            outcome, own_bytes, filesystem_bytes from job_io
            where cluster = $cluster and job_id = $job_id and started_at = $started_at::timestamptz
            """,
        ),
        Figure(
            "slowed",
            "Who was in its way",
            "The bursts of this run that took longer than alone, by how much, and whose bytes stood there most.",
            "A run that took longer than usual has a reason: here is how much of it was others.",
            """
            select filesystem, direction, burst, burst_expected_at, start_delay_s, delay_s, delay_low_s, delay_high_s,
            top_interferer_application_id, top_interferer_bytes, unattributed_bytes from slowdowns where outcome =
            'slowed' and cluster = $cluster and job_id = $job_id and started_at = $started_at::timestamptz order by
            burst
            """,
        ),
        Figure(
            "advice",
            "Where and when to start the next one",
            "For a run of its application at the last poll: file systems from the best to the worst, the best delay, "
            "and how many bytes are expected to find no room at once and then. The query has the load behind it.",
            "Who was in this run's way may be in the next one's: minutes of waiting may save more.",
            _LOAD,
        ),
        Figure(
            "neighbours",
            "Neighbours",
            "Runs that used the same file system at the same time, those of most bytes first.",
            "Who was there explains a run that took longer than usual.",
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
    purpose="What each file system moved, minute by minute and day by day, and who was on it.",
    figures=(
        Figure(
            "calendar",
            "Minutes and days",
            "Each row is a day, each column a minute of it (UTC); the stronger the colour, the more was moved, on a "
            "log scale. What was not polled is hatched.",
            "Vertical stripes are habits of the site; a strong spot that comes once is worth asking who it was.",
            """
            select polled_at, interval_s, read_bytes, written_bytes from filesystem_rates where filesystem = $filesystem
            order by polled_at
            """,
        ),
        Figure(
            "day",
            "One day",
            "What was moved in each five minutes of the day, and what of it applications' signatures explain; grey is "
            "nobody's.",
            "The grey part belongs to programs without a signature, or to those that bypass the scheduler.",
            """
            select application_id, minute_at, sum(attributed_bytes) as attributed_bytes from attributed_io
            where filesystem = $filesystem and minute_at::date = $day::date group by all order by minute_at
            """,
        ),
        Figure(
            "there",
            "Who was on it",
            "Runs that were there on that day, with the bytes that are theirs as far as they are known.",
            "Start here when somebody asks why the file system was slow.",
            """
            select job_id, application_id, sum(attributed_bytes) as attributed_bytes from attributed_io
            where filesystem = $filesystem and minute_at::date = $day::date group by all order by attributed_bytes desc
            """,
        ),
        Figure(
            "slowed",
            "Who was slowed",
            "Runs whose bursts took longer than alone on that day, by how much, and whose bytes stood there most. "
            "Do not rely on an expected correlation below 0.5: the signature may be wrong.",
            "It is what others cost them, in seconds: where it adds up, have one of the two start at another time.",
            """
            select application_id, job_id, sum(delay_s) as delay_s, count(*) as burst_count,
            arg_max(top_interferer_application_id, top_interferer_bytes) as most_there from slowdowns where outcome =
            'slowed' and filesystem = $filesystem and burst_started_at::date = $day::date group by all order by delay_s
            desc
            """,
        ),
        Figure(
            "advice",
            "Who should wait, and how long",
            "Of the applications that move most: how many bytes are expected to find no room if they start here at "
            "the last poll, or after the best delay. The query has the load that this rests on.",
            "What is started here now meets what is here already.",
            f"from ({_LOAD}) where filesystem = $filesystem",
        ),
    ),
    libraries=("tabulator",),
)

QUALITY = Page(
    name="quality",
    title="Quality",
    purpose="How whole the inputs are, which checks do not hold, and what was refused.",
    figures=(
        Figure(
            "days",
            "Days of polls",
            "A cell for each day of each file system, by the share of its polls that are missing.",
            "Signatures and shares of days with holes rest on less than they seem to.",
            """
            select filesystem, polled_on, missing_ratio, implausible_poll_count, conflicting_poll_count from polls_daily
            order by filesystem, polled_on
            """,
        ),
        Figure(
            "failures",
            "Checks that do not hold",
            "What the checks of this release found wrong, and rows that were taken out for it.",
            "A critical one stops a release; a warning is for somebody to look at.",
            "select severity, table_name, expectation, observed from quality where not success and severity <> 'info'",
        ),
        Figure(
            "inference",
            "Inferred classes and periods",
            "How often the class and period that a signature gives to a run are those of the run's own bytes, where "
            "these were counted or traced. A period agrees if it differs by less than 10 %; a harmonic does not.",
            "Inferred answers of runs that were not measured are as good as these, at best: a run that the signature "
            "rests on is not held out.",
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
            "Rows and files that could not be read, each with the reason and what to do about it.",
            "What was refused is in no number of these pages.",
            "select source_file, line, reason, remedy from rejects order by source_file, line",
        ),
    ),
)

CHANGES = Page(
    name="changes",
    title="Changes",
    purpose="What this release says otherwise than the one before.",
    figures=(
        Figure(
            "volume",
            "Volume",
            "Signatures whose bytes a run differ most; --release ID asks the release before for its own.",
            "A program that moves twice as much takes twice the share of the file system.",
            "select application_id, filesystem, direction, volume_bytes, relative_volume_change from signatures "
            "where is_default and outcome = 'extracted' order by abs(relative_volume_change) desc nulls last",
        ),
        Figure(
            "bursts",
            "Bursts",
            "Signatures whose number of bursts differs.",
            "More or fewer of them say that the program, or its input, is not what it was.",
            "select application_id, filesystem, direction, burst_count, added_burst_count, removed_burst_count "
            "from signatures where is_default and outcome = 'extracted'",
        ),
        Figure(
            "period",
            "Period",
            "Applications whose period differs, came or went.",
            "Schedulers that keep bursts apart rely on it.",
            "select subject_id, filesystem, direction, period_s, period_error_s from periods "
            "where subject_kind = 'application' and is_default and outcome = 'periodic'",
        ),
    ),
)

POPULATION = Page(
    name="population",
    title="Population",
    purpose="How all runs together do their I/O: classes, volumes and periods.",
    figures=(
        Figure(
            "classes",
            "Classes over time",
            "Runs by the day on which they ended and by when in the run they do their I/O.",
            "A shift says the mix of programs changed. The class of a run that was not measured is inferred (`basis`).",
            "select ended_on, direction, label, count(*) as run_count from classes where subject_kind = 'job' "
            "and outcome = 'classified' group by all order by all",
        ),
        Figure(
            "volumes",
            "Runs by volume",
            "How many runs moved how much, by the best estimate.",
            "A few large runs usually move most bytes: look at those first.",
            """
            select direction, floor(log2(estimated_bytes)) as power, count(*) as run_count from job_io
            semi join jobs using (cluster, job_id, started_at)
            where estimated_bytes > 0 group by all order by all
            """,
        ),
        Figure(
            "periods",
            "Periods of runs",
            "The periods of runs that do their I/O evenly and periodically, measured or inferred.",
            "Checkpoints of many runs at one period meet again and again.",
            """
            select direction, round(period_s) as period_s, count(*) as run_count from periods
            inner join classes using (subject_kind, cluster, subject_id, started_at, filesystem, direction)
            where subject_kind = 'job' and is_default and periods.outcome = 'periodic'
            and label in ('UNIFORM', 'OTHER') group by all order by all
            """,
        ),
        Figure(
            "shares",
            "Shares of classes",
            "Which share of runs and of bytes each class has, and how many of them are periodic.",
            "White et al. (PEARC'18, Table 2) tell the same of their site; iosig population tells more of yours.",
            "select direction, label, count(*) as run_count from classes "
            "where subject_kind in ('job', 'series') and outcome = 'classified' group by all order by all",
        ),
        Figure(
            "groups",
            "Applications by what they moved",
            "The applications of most bytes over all their users and sizes, with their commonest class.",
            "Where the class is stable, one signature stands for many runs.",
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
    purpose="Every table of the release, what its columns mean, and the SQL to start with.",
    figures=(
        Figure(
            "tables",
            "Tables",
            "Each table with the rows that it has in this release, and its columns with their units.",
            "All that these pages show comes out of them; ask what is not here yourself.",
            "show tables",
        ),
    ),
)

LINEAGE = Page(
    name="lineage",
    title="Lineage",
    purpose="From which tables and columns each table is computed, and by which step of a run.",
    figures=(
        Figure(
            "steps",
            "Steps",
            "An arrow leads from a step to one that reads its tables. Select a step to see what it depends on, what "
            "depends on it, and its tables.",
            "After a change of a setting or a model, the steps below it are those that give other answers; "
            "iosig run --select STEP+ computes them.",
            "select distinct table_name from quality order by table_name",
        ),
        Figure(
            "lineage",
            "Tables",
            "Each table with the tables that it is computed from and those that are computed from it. Where SQL "
            "computes it, columns have the columns that they are computed from; iosig lineage TABLE prints the same.",
            "A number that looks wrong is traced to its inputs.",
            "show tables",
        ),
    ),
)

#: in the order in which they are offered
PAGES: tuple[Page, ...] = (
    NIGHT,
    APPLICATIONS,
    APPLICATION,
    RUN,
    FILESYSTEM,
    POPULATION,
    QUALITY,
    CHANGES,
    TABLES,
    LINEAGE,
)


def page(name: str) -> Page:
    """Look up a page declaration by name."""
    return next(page for page in PAGES if page.name == name)
