"""Plant the runs of the case studies, and measure what the paper sees in its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from iosig.studies.cases.planted import CASES, Case
from iosig.studies.networks.planted import PlantedSystem, build_network, generate_requests
from iosig.studies.work_items import ReportProgress, ignore_progress
from iosig.transforms.networks.bottlenecks import BottleneckFinder
from iosig.transforms.networks.log_bins import NEGATIVE, lower_edges
from iosig.transforms.networks.network import METRICS, Network
from iosig.transforms.networks.patterns import classify_patterns

#: number of time windows; Figures 9 and 10 show the halves of a run
_WINDOWS = 2
#: quantiles between which latencies are compared, in place of the single lowest and highest
_TAILS = (0.01, 0.99)


@dataclass(frozen=True, slots=True)
class StudyParams:
    """Random seed."""

    seed: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """Measures of each run, and its network by name.

    runs: one row per run. pattern: of the times from ranks to I/O nodes, over the whole run. cause_count, right_count:
    ranks that are named as causes, and those of them that were planted. range_octaves: range of all latencies without
    the lowest and highest percent. first_half_s, second_half_s: mean latency in the halves of the run. outlier_rank:
    rank of the largest outlier request in size.
    """

    runs: pl.DataFrame
    networks: Mapping[str, Network]
    patterns: Mapping[str, pl.DataFrame]


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Plant the runs of all cases and measure them; the same seed gives the same results."""
    rows, networks, patterns = [], {}, {}
    for number, case in enumerate(CASES):
        system = case.plant(np.random.default_rng([params.seed, number]))
        network = build_network(system, _make_generator(params, number), _WINDOWS)
        patterns[case.name] = classify_patterns(network)
        outlier_rank = _find_outlier_rank(system, _make_generator(params, number))
        rows.append(_measure(case, system, network, patterns[case.name]) | {"outlier_rank": outlier_rank})
        networks[case.name] = network
        report_progress(number + 1, len(CASES))
    return Results(pl.DataFrame(rows), networks, patterns)


def _make_generator(params: StudyParams, number: int) -> np.random.Generator:
    """Return the generator of a run's requests, the same at each call."""
    return np.random.default_rng([params.seed, number, 1])


def _measure(case: Case, system: PlantedSystem, network: Network, patterns: pl.DataFrame) -> dict[str, Any]:
    row = patterns.filter("is_whole_run", hop=0, metric="time").row(0, named=True)
    causes = np.array([int(node) for node in row["cause_nodes"]], dtype=np.int64)
    low_s, high_s = _find_tails(network)
    first_half_s, second_half_s = _mean_times(network)
    return {
        "case": case.name,
        "study": case.study,
        "figure": case.figure,
        "rank_count": system.shape.rank_count,
        "request_count": int(system.request_count.sum()),
        "pattern": row["pattern"] or row["outcome"],
        "cause_count": len(causes),
        "right_count": int(system.is_cause[causes].sum()),
        "range_octaves": float(np.log2(high_s / low_s)),
        "first_half_s": first_half_s,
        "second_half_s": second_half_s,
    }


def _find_tails(network: Network) -> tuple[float, float]:
    """Return the quantiles `_TAILS` of the latencies from ranks to I/O nodes, as lower edges of their log bins [s]."""
    outer = network.edges.with_row_index("edge").filter(hop=0).select(pl.col("edge").cast(pl.Int32))
    is_time = (pl.col("metric") == METRICS.index("time")) & (pl.col("bin") > NEGATIVE)
    counts = network.counts.filter(is_time).join(outer, on="edge", how="semi")
    bins = counts.group_by("bin").agg(pl.col("count").sum()).sort("bin")
    shares = np.cumsum(bins["count"].to_numpy()) / bins["count"].sum()
    low, high = (int(bins["bin"][int(np.searchsorted(shares, share))]) for share in _TAILS)
    return float(lower_edges(np.array([low]))[0]), float(lower_edges(np.array([high]))[0])


def _mean_times(network: Network) -> tuple[float, ...]:
    """Return the mean latency from ranks to I/O nodes in each window [s]."""
    outer = network.edges.with_row_index("edge").filter(hop=0).select(pl.col("edge").cast(pl.Int32))
    sums = (
        network.totals.join(outer, on="edge", how="semi")
        .group_by("window")
        .agg(pl.col("transfer_time_s").sum() / pl.col("transfer_count").sum())
    )
    return tuple(sums.sort("window")["transfer_time_s"].to_list())


def _find_outlier_rank(system: PlantedSystem, generator: np.random.Generator) -> int | None:
    """Return the rank of the largest request that is an outlier in size; None without such requests."""
    finder, ranks = BottleneckFinder(process_count=system.shape.rank_count), []
    for requests in generate_requests(system, generator):
        finder.add("size", requests.size_bytes, requests.request)
        ranks.append(requests.rank)
    outliers = finder.result().filter(metric="size")
    return None if outliers.is_empty() else int(np.concatenate(ranks)[outliers["request"][0]])
