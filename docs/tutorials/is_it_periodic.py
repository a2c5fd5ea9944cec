"""Tutorial: the period of traces with known and unknown answers, by three methods."""

import marimo

app = marimo.App(width="medium", app_title="Is it periodic?")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Is it periodic? FTIO, AUTOPERIOD and iosig on the same traces

    A scheduler can separate checkpoints that would collide, if it knows their periods. A wrong period does harm, so the
    question has two parts: is this trace periodic at all, and if so, with which period?

    This tutorial gives the same traces to three methods:

    - **FTIO** (Tarraf et al., IPDPS '24) takes the dominant frequency of a Fourier transform.
    - **AUTOPERIOD** (PEARC '18) confirms a candidate of the spectrum by the autocorrelation.
    - **iosig** (`null_tested`) reports a period only if noise shows one as strong with a probability below 1 %.
    """)
    return


@app.cell
def _():
    import os
    import tempfile
    from pathlib import Path

    import marimo as mo
    import numpy as np
    import polars as pl

    import iosig

    return Path, iosig, mo, np, os, pl, tempfile


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 1. Traces with a known answer

    Each trace is an hour of writes, sampled once per second. Two of them are periodic: bursts of 12 s every 90 s,
    exactly and with compute phases that vary by 15 %. Two are not: the same bursts at random times, and slowly varying
    noise (red noise), which resembles the sum of many small jobs.
    """)
    return


@app.cell
def _(np):
    random = np.random.default_rng(7)
    duration_s = 3600

    def make_bursts(starts_s):
        rates = np.full(duration_s, 1e6)
        for start_s in starts_s:
            rates[int(start_s) : int(start_s) + 12] += 2e9
        return rates

    def make_red_noise():
        steps = random.normal(size=duration_s)
        noise = np.zeros(duration_s)
        for second in range(1, duration_s):
            noise[second] = 0.99 * noise[second - 1] + steps[second]
        return 1e8 * (noise - noise.min())

    delays_s = 12 + 78 * random.normal(1, 0.15, 37)
    traces = {
        "regular": (90.0, make_bursts(np.arange(20, 3500, 90))),
        "jitter": (delays_s.mean(), make_bursts(20 + np.cumsum(np.r_[0, delays_s]))),
        "random times": (None, make_bursts(np.sort(random.uniform(0, 3500, 39)))),
        "red noise": (None, make_red_noise()),
    }
    return (traces,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 2. Ask all methods

    `iosig.find_periods` reads a file and analyzes it as the nightly run does. It takes any input with bytes over time:
    a series as here, a Darshan, DFTracer, Recorder or TMIO trace, or polls of servers. `"all"` applies every method.
    """)
    return


@app.cell
def _(Path, iosig, np, pl, tempfile, traces):
    scratch = tempfile.TemporaryDirectory(prefix="iosig-tutorial-")
    results = {}
    for name, (_, rates) in traces.items():
        path = Path(scratch.name) / f"{name} write.csv"
        pl.DataFrame(
            {"time_s": np.arange(1.0, len(rates) + 1), "write_bytes_per_s": rates}
        ).write_csv(path)
        results[name] = iosig.find_periods(path, "all", direction="write")
    results["regular"]
    return results, scratch


@app.cell
def _(pl, results, traces):
    def select_periods(result):
        rows = result.rows.filter(
            pl.col("method").is_in(["ftio", "autoperiod", "null_tested"])
        )
        return dict(rows.select("method", "period_s").iter_rows())

    table = pl.DataFrame(
        [
            {"trace": name, "true_period_s": traces[name][0], **select_periods(result)}
            for name, result in results.items()
        ],
        infer_schema_length=None,
    ).with_columns(pl.col(pl.Float64).round(1))
    table
    return (table,)


@app.cell(hide_code=True)
def _(mo, table):
    aperiodic = table.filter(table["true_period_s"].is_null())
    false_alarms = [
        f"{name} reports {aperiodic[name].count()}"
        for name in ("ftio", "autoperiod", "null_tested")
    ]
    mo.md(f"""
    A dash means "not periodic". All methods find the regular bursts, and come close to the mean period with jitter.
    The last two traces have no period, so each period there is a false alarm: {", ".join(false_alarms)}. Any hour of
    noise has a highest peak in its spectrum. Only a test against noise tells whether the peak means something.

    ## 3. Look at the evidence

    The picture shows the signal with the period of each method, for the bursts with jitter.
    """)
    return


@app.cell
def _(results):
    results["jitter"].draw()
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The same for the bursts at random times. Nothing repeats here, whatever a spectrum shows.
    """)
    return


@app.cell
def _(results):
    results["random times"].draw()
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## 4. Real traces

    The wheel of `darshan` contains the log of a short IOR run. `IOSIG_TEST_DATA` may name a folder with `ccr-gpfs/`:
    GPFS counters of three jobs, from the [reference implementation of
    AUTOPERIOD](https://github.com/akofke/autoperiod). Their truth is not known.
    """)
    return


@app.cell
def _(Path, iosig, os, pl):
    import darshan

    data = Path(
        os.environ.get(
            "IOSIG_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"
        )
    )
    names = (
        "industry-2895978-gpfs-reads.csv",
        "industry-2896041-gpfs-writes.csv",
        "ub-hpc-reads-6299171.csv",
    )
    paths = [
        data / "ccr-gpfs" / name
        for name in names
        if (data / "ccr-gpfs" / name).is_file()
    ]
    paths.append(next(Path(darshan.__file__).parent.rglob("ior_hdf5_example.darshan")))

    def analyze(path):
        methods = ("ftio", "autoperiod", "null_tested")
        rows = pl.concat(iosig.find_periods(path, method).rows for method in methods)
        periods = rows.pivot(
            "method", index=["subject_id", "direction"], values="period_s"
        )
        return periods.select(
            pl.lit(path.name).alias("input"), "direction", pl.col(methods).round(1)
        )

    real = pl.concat([analyze(path) for path in paths])
    real
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    A period of a whole day is the length of the record: the lowest frequency of its spectrum, and no repetition. Where
    AUTOPERIOD and iosig agree, as on the second job, the period is well supported.

    ## What to conclude

    - Ask first whether a trace is periodic. A period without a false-alarm probability is a guess.
    - `null_tested` makes no claim where the evidence is weak. Use it for decisions that no person reviews.
    - Use FTIO and AUTOPERIOD where you know that the I/O is periodic, or to compare with published results.
    - Four traces prove nothing. The [study of periods](../periods-study.md) has thousands, with the error rates of each
      method: on some kinds of noise, FTIO and AUTOPERIOD report a period in more than 90 % of the traces, and
      `null_tested` in about 1 %.

    `iosig period FILE --method all --plot period.png` does the same in a terminal.
    """)
    return


if __name__ == "__main__":
    app.run()
