"""Tutorial: from the raw logs of one day to the jobs that moved the bytes."""

import marimo

app = marimo.App(width="medium", app_title="Edison's day")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Edison's day: from raw logs to who moved the bytes

    A file system was busy for ten minutes, and somebody asks why. Two logs exist already: the scheduler's job log, and
    the rates that the storage servers reported every few seconds. This tutorial takes one day of both and answers the
    question. It needs a minute of computing time.

    The day is 9 February 2018 on Edison, a Cray XC30 at NERSC. At 11:14 UTC, a user ran eight I/O benchmarks one after
    another on the file system `snx11025`. The polls are those of [pytokio](https://github.com/NERSC/pytokio) and its
    [larger tests](https://github.com/glennklockwood/pytokio-tests); the jobs come from
    [tokio-abcutils](https://github.com/NERSC/tokio-abcutils). Set `IOSIG_TEST_DATA` to a folder with
    `lmt/edison-snx11025_2018-02-09.h5lmt` and `jobs/edison-2018-02-09.sacct`. Without them, the notebook simulates a
    day, and all steps are the same.
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
    import polars as pl

    import iosig

    return Path, iosig, mo, os, pl, subprocess, sys, tempfile


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 1. Collect the logs

    A warehouse is a folder. Its settings say what iosig cannot know: the job log calls the file system `scratch1`, the
    servers call it `snx11025`.
    """)
    return


@app.cell
def _(Path, os, tempfile):
    data = Path(
        os.environ.get(
            "IOSIG_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"
        )
    )
    job_log, polls = (
        data / "jobs" / "edison-2018-02-09.sacct",
        data / "lmt" / "edison-snx11025_2018-02-09.h5lmt",
    )
    is_edison = job_log.is_file() and polls.is_file()

    scratch = tempfile.TemporaryDirectory(prefix="iosig-tutorial-")
    folder = Path(scratch.name)
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    if is_edison:
        filesystem = "snx11025"
        (warehouse / "iosig.toml").write_text('[filesystems]\nscratch1 = "snx11025"\n')
    else:
        from iosig.flows.demo.simulated import FILESYSTEM, settings_text, write_site
        from iosig.transforms.synthetic.site import SiteParams, simulate

        filesystem = FILESYSTEM
        (warehouse / "iosig.toml").write_text(settings_text(folder))
        job_log, polls = write_site(simulate(SiteParams(seed=1, days=1)), folder)
    return filesystem, is_edison, job_log, polls, scratch, warehouse


@app.cell
def _(job_log, mo):
    mo.plain_text("".join(job_log.read_text().splitlines(keepends=True)[:4]))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 2. Land the files

    `iosig land` recognizes each format by content, and copies the rows into the warehouse. It states how many rows it
    read, their time range and the time zone of local times.
    """)
    return


@app.cell
def _(Path, job_log, mo, polls, subprocess, sys, warehouse):
    program = Path(sys.executable).with_name("iosig")

    def run_iosig(*arguments):
        command = [program, "--warehouse", warehouse, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    # messages are printed to stderr, results to stdout
    landed = run_iosig("land", job_log, polls, "--time-zone", "UTC").stderr
    mo.plain_text(
        landed.replace(f"{job_log.parent}/", "").replace(f"{polls.parent}/", "")
    )
    return landed, program, run_iosig


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 3. Compute a release

    `iosig run` stages the rows, joins jobs and traffic, computes every table, checks them and publishes a release.
    """)
    return


@app.cell
def _(landed, mo, program, run_iosig, warehouse):
    # marimo orders cells by the names that they use: a run needs the landed files
    assert landed
    summary = run_iosig("run").stdout
    mo.plain_text(
        summary.replace(str(warehouse), "warehouse").replace(f"{program.parent}/", "")
    )
    return (summary,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 4. Look at the traffic

    `iosig.open` opens the warehouse for reading. Queries are DuckDB's SQL and return Polars frames. The query finds the
    time of the runs, and the picture shows the traffic of the file system in this time.
    """)
    return


@app.cell
def _(filesystem, iosig, summary, warehouse):
    assert summary
    release = iosig.open(warehouse).release()
    runs = release.sql(
        """
        select count(distinct job_id) as runs, min(started_at) as since, max(ended_at) as until
        from job_io
        inner join jobs using (cluster, job_id, started_at)
        where job_io.filesystem = $filesystem
        """,
        {"filesystem": filesystem},
    )
    since, until = runs["since"].item(), runs["until"].item()
    runs
    return release, since, until


@app.cell
def _(filesystem, release, since, until):
    release.draw_who(filesystem, since=since, until=until)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The black line is what the servers measured. Colors are applications, as far as a signature explains the traffic.
    A signature needs five similar runs, so a single day explains little. Gray is unattributed.

    ## 5. Who moved the bytes?

    `who` distributes the measured bytes over the runs. *Attributed* bytes are supported by signatures. For the rest,
    iosig estimates how much of it each active run is likely to have moved: traffic that rises when a run starts and
    falls when it ends probably belongs to that run.
    """)
    return


@app.cell
def _(filesystem, release, since, until):
    answer = release.who(filesystem, since=since, until=until)
    answer
    return (answer,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 6. Can this be true?

    The table `job_io` has what the whole file system moved during each run. No run can have moved more than that, so it
    bounds each estimate. `connect` gives a DuckDB connection, whose relations become Polars frames for the join.
    """)
    return


@app.cell
def _(answer, filesystem, pl, release):
    run = ["cluster", "job_id", "started_at"]
    with release.connect() as connection:
        job_io = connection.sql(
            "from job_io where filesystem = $filesystem",
            params={"filesystem": filesystem},
        )
        volumes = job_io.aggregate(
            f"{', '.join(run)}, sum(filesystem_bytes) as filesystem_bytes"
        ).pl()

    estimated_bytes = pl.col("attributed_bytes") + pl.col("likely_bytes").fill_null(0)
    compared = (
        answer.candidates.join(volumes, on=run)
        .select(
            "job_id",
            "application",
            estimated_gb=(estimated_bytes / 1e9).round(),
            filesystem_gb=(pl.col("filesystem_bytes") / 1e9).round(),
            ratio=(estimated_bytes / pl.col("filesystem_bytes")).round(3),
        )
        .sort("estimated_gb", descending=True)
        .head(10)
    )
    compared
    return (compared,)


@app.cell(hide_code=True)
def _(answer, compared, is_edison, mo):
    first = compared.row(0, named=True)
    total = answer.measured_bytes
    estimated = (
        answer.candidates.select("attributed_bytes", "likely_bytes")
        .sum()
        .sum_horizontal()
        .item()
    )
    mo.md(
        f"""
    The file system moved {total / 1e12:.1f} TB in this time, and {estimated / total:.0%} of it is assigned to runs.
    Job {first["job_id"]} ({first["application"]}) has the largest share, with about {first["estimated_gb"]:,.0f} GB.
    """
        + (
            """
    Five of the eight benchmarks moved about 2.2 TB each. The estimates are close to the bounds, since little else used
    the file system. The published analysis of this day (tokio-abcutils) states 2,096 GiB written during
    `hacc_io_write`. This is 2,251 GB, and the estimate is within 0.1 % of it.
    """
            if is_edison
            else """
    This day is simulated. Its runs overlap, so estimates are clearly below the bounds.
    """
        )
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## What to conclude

    - One day of two logs is enough to name candidates. Treat likely bytes as a reason to ask, not as a proof.
    - The bytes become *attributed*, with a range and a confidence, once applications have run five times.
    - `iosig who FILESYSTEM --since TIME --until TIME` prints the same answer in a terminal.

    Next: [the first night](../first-night.md) with your own files, [tables](../tables.md), and
    [how attribution works](../attribution.md).
    """)
    return


if __name__ == "__main__":
    app.run()
