"""The study as a page: `scheduling-study.md` with its tables, and the figure beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from studies.periods.page import FIGURES, markdown_table, write_page
from studies.scheduling.running import POLICIES, WORKLOADS, Results, summary

PAGE = "scheduling-study.md"
_FIGURE = "scheduling-study-runs.png"
SUMMARY = (
    *("workload", "policy", "stretch", "I/O slowdown", "utilization"),
    *("stretch / clairvoyant", "I/O slowdown / original"),
)
#: what FTIO states of Figure 17 (section IV)
_STATED = (
    "The paper states of its predictions, on a real file system: 2.2 % more stretch than clairvoyant and 19 % more I/O "
    "slowdown; 20 % less stretch and 56 % less I/O slowdown than the original; an error of 50 % costs 5 % more stretch "
    "and 27 % more I/O slowdown."
)


def write(results: Results, folder: Path) -> Path:
    """Write the page and its figure into a folder; return the page."""
    return write_page(folder / PAGE, lambda figures: _draw(results, figures), lambda: text(results))


def _draw(results: Results, folder: Path) -> None:
    from studies.scheduling.figures import draw_runs

    draw_runs(results.runs, folder / _FIGURE)


def rows(results: Results) -> Iterator[Sequence[str]]:
    """Yield the medians of each workload and policy."""
    for row in summary(results).iter_rows(named=True):
        yield (
            row["workload"],
            row["policy"],
            f"{row['stretch']:.3f}",
            f"{row['io_slowdown']:.2f}",
            f"{row['utilization']:.3f}",
            f"{row['stretch_over_clairvoyant']:.3f}",
            f"{row['io_slowdown_over_original']:.2f}",
        )


def text(results: Results) -> str:
    """Return the page."""
    return "\n\n".join(_blocks(results)) + "\n"


def _blocks(results: Results) -> Iterator[str]:
    params = results.params
    command = f"iosig study scheduling --seeds {params.seed_count} --seed {params.seed}"
    yield f"<!-- Made by `{command} --into DIR`: run it again instead of editing this page. -->"
    yield "# What knowing periods is worth to an I/O scheduler"
    yield (
        "Jobs that compute and do I/O share one file system, in a simulation. Set-10 (IO-Sets) puts them into sets by "
        "the order of magnitude of their period, lets one job of a set do I/O at a time, and gives sets with short "
        "periods most of the bandwidth. What it needs is each job's period; FTIO showed that a predicted one does "
        '(Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS\'24, section IV, Figure 17).'
    )
    yield markdown_table(("policy", "what it is"), ((name, doc) for name, (doc, _) in POLICIES.items()))
    yield markdown_table(("workload", "what it is"), WORKLOADS.items())
    yield f"![Stretch, I/O slowdown and utilization]({FIGURES}/{_FIGURE})"
    yield markdown_table(SUMMARY, rows(results))
    yield (
        f"Medians of {params.seed_count} draws of each workload. Stretch: how many times as long a job ran as alone; "
        "I/O slowdown: the same of its I/O, waiting included; both as geometric means over the jobs. Utilization: the "
        "share of node time that was spent computing."
    )
    yield _STATED
    yield (
        "Ours is a fluid model: bandwidth is shared without any loss, and a job waits for nothing else. Run length, "
        "start times (evenly over each job's period) and jitter (5 %) are ours, since the paper does not give them; "
        "with starts over half the period, stretch falls by as much as the paper's. The periods that are `predicted` "
        "come from inside the simulation: the transform of the rate of the last eight I/O phases that the job has "
        "done so far (`studies/scheduling/observed_periods.py`). Here the mean gap of phases does as well, since the "
        "simulation tells where phases begin and end, which a trace of requests does not."
    )
