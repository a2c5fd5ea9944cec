"""Tutorial: what to check in the first week of a new site."""

import marimo

app = marimo.App(width="medium", app_title="Your first site")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Your first site: what to check in the first week

    A first release is easy to get, and easy to misread: a wrong time zone or a missing mapping of file systems gives
    tables that look fine and mean nothing. `iosig check-site` finds most of these mistakes. This tutorial shows its
    result, and then looks at each part with one query, in the order in which they matter.

    Set `IOSIG_WAREHOUSE` to the warehouse of your site. Without it, the notebook runs `iosig demo`: three nights of a
    simulated site, with a torn job log and a truncated file of polls on the third day.
    """)
    return


@app.cell
def _():
    import os
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import marimo as mo

    import iosig

    return Path, iosig, mo, os, subprocess, sys, tempfile


@app.cell
def _(Path, iosig, os, subprocess, sys, tempfile):
    scratch = tempfile.TemporaryDirectory(prefix="iosig-tutorial-")
    place = os.environ.get("IOSIG_WAREHOUSE")
    program = Path(sys.executable).with_name("iosig")
    if place is None:
        place = Path(scratch.name) / "warehouse"
        subprocess.run(
            [program, "demo", "--output", scratch.name], capture_output=True, check=True
        )
    warehouse = iosig.open(place)
    release = warehouse.release()
    release
    return place, program, release, scratch, warehouse


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Every day: one command

    `iosig check-site` shows what the logs cover, how many applications have a reliable signature, and what to do next.
    [The first week](../first-week.md) explains each line. Repeat it until there is nothing to do.
    """)
    return


@app.cell
def _(mo, place, program, release, subprocess):
    command = [program, "--warehouse", place, "check-site"]
    command += ["--release", release.release.release_id]
    mo.plain_text(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Day 1: has everything been read?

    `status` lists problems and notes, each with what to do. It is what `iosig status` prints, and what a monitor should
    run every hour.
    """)
    return


@app.cell
def _(warehouse):
    warehouse.status()
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Unreadable rows and files are in `rejects`, each with a reason and a remedy. A few rows in a million are normal.
    The same reason in every file means that a format or a setting is wrong.
    """)
    return


@app.cell
def _(release):
    release.sql("""
        select source_file, reason, remedy, count(*) as rows
        from rejects
        group by all
        order by rows desc, source_file
        limit 10
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Day 1: do jobs and file systems match?

    Traffic joins jobs by time and by the name of the file system. If the job log and the polls use different names, or
    a file system has no polls, its runs get no estimate. Three kinds of rows need a setting:

    - the outcome `no_polls`: map the name in `[filesystems]`, or land the missing polls;
    - no file system: set `filesystem_pattern` in `[jobs]`, or `[partitions]`;
    - a path as file system: it comes from a trace. Map the mount point in `[filesystems]`.
    """)
    return


@app.cell
def _(release):
    release.sql("""
        select filesystem, estimate_source, outcome, count(*) as rows
        from job_io
        group by all
        order by filesystem, rows desc
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Day 2: are the clocks right?

    A wrong time zone shifts jobs against traffic by whole hours. `iosig run` tests for this shift, and warns. The
    picture lets you see it: bursts must lie within runs. Compare the starts of large jobs with the rise of the
    traffic.
    """)
    return


@app.cell
def _(release):
    busiest = release.sql("""
        select filesystem, max(polled_at) - interval 12 hour as since, max(polled_at) as until
        from filesystem_rates
        group by filesystem
        order by sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) desc
        limit 1
    """)
    filesystem, since, until = busiest.row(0)
    release.draw_who(filesystem, since=since, until=until)
    return filesystem, since, until


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Day 2: are the polls complete?

    Each file system has a polling interval and a number of controllers. `missing_ratio` is the part of the expected
    polls that did not arrive. Above 5 %, look for a restart of the collector, or for servers that it does not
    reach. A `controller_count` that changes from day to day is a warning as well.
    """)
    return


@app.cell
def _(release):
    release.sql("""
        select filesystem, polled_on, interval_s, controller_count, round(missing_ratio, 4) as missing_ratio,
            is_partial_day
        from polls_daily
        order by filesystem, polled_on
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Day 3: do applications repeat?

    A signature needs at least five runs of one user, program and node count. Count the runs in each set. If most sets
    have a single run, the names are too fine: job names with dates or parameters make each run a program of its own.
    `application_pattern` in `[jobs]` cuts such names.
    """)
    return


@app.cell
def _(release):
    release.sql("""
        with sets as (
            select application_id, filesystem, direction, count(*) as runs
            from sample_sets
            where metric = 'bytes'
            group by all
        )
        select
            count(*) filter (runs < 5) as too_small,
            count(*) filter (runs between 5 and 19) as with_5_to_19_runs,
            count(*) filter (runs >= 20) as with_20_and_more
        from sets
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Day 4: which signatures can you trust?

    `expected_correlation` estimates how well a signature agrees with the true one, from the agreement of its runs.
    iosig infers classes and periods only from signatures above 0.6, the default of `min_expected_correlation`. Below,
    wait for more runs. The picture shows the application with the largest volume.
    """)
    return


@app.cell
def _(release):
    signatures = release.sql("""
        select application_id, direction, used_sample_count, burst_count, round(volume_bytes / 1e9) as volume_gb,
            round(expected_correlation, 2) as expected_correlation
        from signatures
        where is_default and metric = 'bytes' and outcome = 'extracted'
        order by signatures.expected_correlation desc nulls last, application_id, direction
    """)
    signatures
    return (signatures,)


@app.cell
def _(mo, release, signatures):
    largest = signatures.sort("volume_gb").tail(1).select("application_id", "direction")
    drawn = [release.draw_signature(*row) for row in largest.iter_rows()]
    drawn[0] if drawn else mo.md("No application has a signature yet.")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The upper panel shows the runs with all other traffic of the file system, the lower one the signature. Bursts of the
    signature must be visible in most runs. If they are not, compare the job log's start times with those of the
    traffic.

    ## Day 5: how much of the traffic is explained?
    """)
    return


@app.cell
def _(release):
    release.sql("""
        select filesystem, polled_on, direction, round(measured_bytes / 1e12, 2) as measured_tb,
            round(attributed_bytes / measured_bytes, 2) as attributed_ratio
        from attribution_daily
        where measured_bytes > 0
        order by all
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The ratio grows during the first weeks, as more applications reach five runs. Traffic that stays unattributed comes
    from programs that run once, from interactive use, or from clients that are not in the job log. `iosig patterns`
    shows what repeats in it.

    ## Day 5: who uses the storage?
    """)
    return


@app.cell
def _(release):
    release.top("user")
    return


@app.cell
def _(filesystem, release, since):
    release.slowdowns(filesystem, since=since)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Show these two tables to somebody who knows the users. Surprises are either findings or mistakes in the mapping of
    names, and both are worth a talk.

    ## Every day: which checks failed?

    Failed checks are published with the release. Those of severity `critical` stop it.
    """)
    return


@app.cell
def _(release):
    release.sql("""
        select table_name, expectation, severity, unexpected_count, observed
        from quality
        where not success and severity != 'info'
        order by severity, table_name, expectation
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## What to conclude

    | check | good | otherwise |
    | --- | --- | --- |
    | rejects | a few rows | read `reason`, correct the export or the settings |
    | outcomes of `job_io` | most runs have polls | map names in `[filesystems]` and `[partitions]` |
    | clocks | bursts lie within runs | set `[time_zones]`, land again with `--replace` |
    | missing polls | at most 5 % | look at the collector |
    | runs in a set | many sets of five and more | set `application_pattern` |
    | expected correlation | above 0.6 for the large applications | wait, or poll more often |
    | attributed ratio | grows from week to week | `iosig patterns`, job statistics |

    Next: [the first week](../first-week.md), [operations](../operations.md), [settings](../settings.md), [job statistics](../job-statistics.md).
    """)
    return


if __name__ == "__main__":
    app.run()
