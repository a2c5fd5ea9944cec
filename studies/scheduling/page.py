"""What the study of scheduling shows: its page, and its table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from iosig.studies.pages import Block, Figure, Table
from iosig.studies.scheduling.figures import draw_runs
from iosig.studies.scheduling.running import POLICIES, WORKLOADS, Results, summary

#: what FTIO states of Figure 17 (section IV)
_STATED = (
    "The paper states of its predictions, on a real file system: 2.2 % more stretch than clairvoyant and 19 % more I/O "
    "slowdown; 20 % less stretch and 56 % less I/O slowdown than the original; an error of 50 % costs 5 % more stretch "
    "and 27 % more I/O slowdown."
)


def document(results: Results) -> list[dict[str, object]]:
    """Return the results as plain values."""
    return results.runs.to_dicts()


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "Medians over the draws", _medians(results)


def _medians(results: Results) -> Table:
    """Return the medians of each workload and policy."""
    return Table.of(
        summary(results),
        ("workload", "{workload}"),
        ("policy", "{policy}"),
        ("stretch", "{stretch:.3f}"),
        ("I/O slowdown", "{io_slowdown:.2f}"),
        ("utilization", "{utilization:.3f}"),
        ("stretch / clairvoyant", "{stretch_over_clairvoyant:.3f}"),
        ("I/O slowdown / original", "{io_slowdown_over_original:.2f}"),
    )


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# What knowing periods is worth to an I/O scheduler"
    yield (
        "Jobs that compute and do I/O share one file system, in a simulation. Set-10 (IO-Sets) puts them into sets by "
        "the order of magnitude of their period, lets one job of a set do I/O at a time, and gives sets with short "
        "periods most of the bandwidth. What it needs is each job's period; FTIO showed that a predicted one does "
        '(Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS\'24, section IV, Figure 17).'
    )
    yield Table(("policy", "what it is"), [(name, doc) for name, (doc, _) in POLICIES.items()])
    yield Table(("workload", "what it is"), list(WORKLOADS.items()))
    yield Figure("Stretch, I/O slowdown and utilization", "runs", partial(draw_runs, results.runs))
    yield _medians(results)
    yield (
        f"Medians of {results.params.seed_count} draws of each workload. Stretch: how many times as long a job ran as "
        "alone; I/O slowdown: the same of its I/O, waiting included; both as geometric means over the jobs. "
        "Utilization: the share of node time that was spent computing."
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
