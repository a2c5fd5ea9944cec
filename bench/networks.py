"""Networks: of a real log, from its landed requests to the page; and a large picture, each beside its limit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from bench.figures import Figure
from bench.network_pages import made_up_view
from bench.processes import cost_of, in_turn, python
from iosig.answers.single.one_input import TraceInput, opened
from iosig.estimates.networks.making import Asked, network_of_trace
from iosig.reports.networks.page import write_page
from iosig.reports.networks.view import NetworkView
from iosig.settings.model import Settings
from iosig.streams.landing import Told
from iosig.transforms.networks.network import NetworkParams
from iosig.transforms.networks.rings import layout

_MOST_TIMES, _AND_S = 3.0, 1.0
_MOST_CPU_S = 5.0
_PICTURE = """
import sys
from pathlib import Path
from bench.network_pages import made_up_view
view = made_up_view(1)
from iosig.reports.networks.picture import draw
{work}
"""


def figures(data: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Measure what there is to say of networks; `data` is the folder of real measurements."""
    yield from page_of_log(next((data / "darshan").glob("jeanbez_8_*.darshan")), scratch, rounds)
    yield from picture(scratch, rounds)


def page_of_log(log: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the way from landed requests to the HTML file, beside reading the log's requests, and the landed ones."""
    settings = Settings.model_construct()

    def read() -> None:
        with opened(log, settings, Told()):
            pass

    with opened(log, settings, Told()) as found:
        assert isinstance(found, TraceInput)
        trace = found

        def page() -> None:
            made = network_of_trace(trace.landed, Asked(), NetworkParams(), trace.jobs["process_count"][0])
            network = made.network
            assert network is not None
            view = NetworkView(log.name, network, layout(network), made.patterns, made.bottlenecks, made.notes)
            write_page(view, scratch / "log.html")

        def scan() -> None:
            pl.collect_all(trace.landed["trace_requests"])

        taken, peers, landed = (_median_s(work, rounds) for work in (page, read, scan))
    limit_s = _MOST_TIMES * peers + _AND_S
    yield Figure(
        f"from landed requests to the page of {log.name.split('_id')[0]} (123,166 requests) / reading the log",
        f"{taken:.2f} s",
        f"{peers:.2f} s",
        f"{taken / peers:.2f}",
        f"{_MOST_TIMES:.0f} x peer + {_AND_S:.0f} s = {limit_s:.1f} s",
        taken <= limit_s,
    )
    strict_s = _MOST_TIMES * landed + _AND_S
    yield Figure(
        "… / reading the landed ones from Parquet",
        f"{taken:.2f} s",
        f"{landed:.3f} s",
        f"{taken / landed:.0f}",
        f"{_MOST_TIMES:.0f} x peer + {_AND_S:.0f} s = {strict_s:.2f} s",
        taken <= strict_s,
    )


def picture(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the PNG of 8,192 + 256 edges of 50 slots: a whole process, less one that makes the network alone."""
    drawn, made = (
        python(_PICTURE.format(work=work), str(scratch / "network.png"))
        for work in ('draw(view, Path(sys.argv[1]), "png")', "")
    )
    whole, without = in_turn(lambda: cost_of(drawn), lambda: cost_of(made), rounds)
    cpu_s = statistics.median(cost.cpu_s for cost in whole) - statistics.median(cost.cpu_s for cost in without)
    yield Figure(
        f"PNG of {made_up_view(1).network.edges.height:,} edges of 50 slots, Matplotlib's import included, "
        "processor time",
        f"{cpu_s:.2f} s",
        "",
        "",
        f"{_MOST_CPU_S:.0f} s",
        cpu_s < _MOST_CPU_S,
    )


def _median_s(work: Callable[[], None], rounds: int) -> float:
    """Return what the work takes, after a round that does not count."""
    taken = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])
