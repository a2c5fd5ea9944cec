"""Format a network's metrics, values with units, findings and node names as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from iosig.reports.networks.scales import Scale
from iosig.reports.networks.view import SlowNodes
from iosig.reports.texts import RATES, VOLUMES, Unit, amount_text, format_count, plain, plural, shorten, thousands
from iosig.transforms.arrays import Reals
from iosig.transforms.networks.network import Metric, Network

#: units of time without minutes, because individual requests are short
_SECONDS = thousands("s", "nµm ", -9)
_UNITS: dict[Metric, tuple[tuple[Unit, ...], str]] = {
    "time": (_SECONDS, "s"),
    "size": (VOLUMES, "B"),
    "bandwidth": (RATES, "B/s"),
}
_TIMES = {"service_time": "service time", "latency": "latency", "write_time": "write time"}
_PATTERNS = {
    "circular": "circular: similar at all {}",
    "striped": "striped: in bands of neighboring {}",
    "noisy": "noisy: scattered, independent of the {}",
    "outlier": "outlier: high at few {}",
}
_NO_PATTERN = {
    "too_few_nodes": "no pattern named: too few {} are active",
    "too_few_transfers": "no pattern named: too few transfers have a known value",
    "no_match": "no pattern fits",
}
_MAX_NODE_CHARS, _MAX_CAUSES = 48, 5


def quantity(network: Network, metric: Metric) -> str:
    """Return a metric's display name for this network; different kinds of times are all listed."""
    if metric != "time":
        return metric
    return " and ".join(_TIMES[kind] for kind in dict.fromkeys(network.time_kinds)) or "time"


def get_hop_quantity(network: Network, metric: Metric, hop: int) -> str:
    """Return a metric's display name between two adjacent layers."""
    return _TIMES[network.time_kinds[hop]] if metric == "time" else metric


def value_text(metric: Metric, value: float) -> str:
    """Format a metric's value in a suitable unit."""
    # Round first, so that 999.9 µs becomes 1 ms rather than 1e+03 µs.
    return amount_text(float(f"{value:.3g}") * (1 + 1e-12), *_UNITS[metric])


# ---- axes of values


def log_ticks(low: float, high: float, max_count: int = 9) -> Reals:
    """Return axis ticks (n) between two positive values: powers of ten, with intermediate steps if these are few."""
    if not 0 < low <= high or not np.isfinite(high):
        return np.empty(0)
    first, last = int(np.ceil(np.log10(low) - 1e-9)), int(np.floor(np.log10(high) + 1e-9))
    step = max(-(-(last - first + 1) // max_count), 1)
    if last - first >= 2:
        return np.power(10.0, np.arange(-(-first // step) * step, last + 1, step, dtype=np.float64))
    powers = 10.0 ** np.arange(max(first - 1, -307), min(last + 1, 308))
    for steps in ((1.0, 3.0), (1.0, 2.0, 5.0), tuple(range(1, 10)), tuple(np.arange(10, 100) / 10)):
        ticks = np.outer(powers, steps).ravel()
        chosen = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
        if len(chosen) >= min(3, max_count):
            break
    return _apart(chosen, np.log(high / low) / max_count) if len(chosen) else np.array([low])


def _apart(values: Reals, min_distance: float) -> Reals:
    """Select ascending values (n) with a minimum logarithmic distance from each other, starting with the first."""
    logs, selected = np.log(values), [0]
    for place in range(1, len(values)):
        if logs[place] - logs[selected[-1]] >= min_distance * (1 - 1e-9):
            selected.append(place)
    return values[selected]


def slot_places(scale: Scale, values: Reals) -> Reals:
    """Convert positive values (n) to fractional slot positions; an integer is the start of a slot."""
    edges = np.append(scale.lowest_values[scale.special_count :], scale.highest_values[-1:])
    places = scale.special_count + np.arange(len(edges), dtype=np.float64)
    positions: Reals = np.interp(np.log(values), np.log(edges), places)
    return positions


# ---- names of nodes


def distinct(labels: Sequence[str]) -> list[str]:
    """Strip the common prefix (without splitting numbers) and the common domain from labels."""
    if len(labels) < 2:
        return list(labels)
    partitions = [label.partition(".") for label in labels]
    if len({domain for _, _, domain in partitions}) == 1:
        labels = [first for first, _, _ in partitions]
    first, last = min(labels), max(labels)
    common_length = next((place for place, (a, b) in enumerate(zip(first, last)) if a != b), len(first))  # noqa: B905
    common = first[:common_length].rstrip("0123456789")
    shown = [label[len(common) :] for label in labels]
    return shown if all(shown) and len(set(shown)) == len(set(labels)) else list(labels)


def node_text(label: str) -> str:
    """Format a node's label for use in a sentence."""
    return plain(label, _MAX_NODE_CHARS)


# ---- findings


def pattern_texts(
    network: Network, patterns: pl.DataFrame, metric: Metric, slow: Sequence[SlowNodes] = ()
) -> list[str]:
    """Return a sentence on each hop's overall pattern of a metric, naming the nodes that cause it.

    slow: slow nodes by layer. A pattern of times shared by all nodes is not reported where some of them are slow.
    """
    rows = _whole(network, patterns, metric).iter_rows(named=True)
    counts = {nodes.layer: nodes.slow_count for nodes in slow} if metric == "time" else {}
    return [_pattern_text(network, row, counts) for row in rows]


def describe_slowest(slow: Sequence[SlowNodes]) -> list[str]:
    """Describe the slowest node of each layer with slow nodes, the innermost layer first."""
    return [
        f"{node_name(node.layer, node.labels[0])} \u00d7 {ratio_text(node.ratios[0])}, slowest of {node.node_count:,}"
        + (f" ({node.slow_count - 1:,} more)" if node.slow_count > 1 else "")
        for node in reversed(slow)
        if node.slow_count
    ]


def slow_finding(slow: Sequence[SlowNodes]) -> str:
    """Name the slow nodes in one sentence; empty if nodes cannot be compared."""
    descriptions = describe_slowest(slow)
    if descriptions:
        return f"Slow: {'; '.join(descriptions)}"
    return "No slow nodes: none takes twice as long as the median of its layer" if slow else ""


def node_name(layer: str, label: str) -> str:
    """Format a node's label for a sentence; a bare number is preceded by its layer."""
    text = node_text(label)
    return f"{plain(layer, 24)} {text}" if text[:1].isdecimal() else text


def ratio_text(ratio: float) -> str:
    """Format a ratio with two decimals, or as an integer from 100 on."""
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"


def pattern_causes(network: Network, patterns: pl.DataFrame, metric: Metric) -> list[list[str]]:
    """Return, for each hop, the outer nodes that cause its whole-run pattern."""
    causes: list[list[str]] = [[] for _ in range(network.hop_count)]
    for row in _whole(network, patterns, metric).iter_rows(named=True):
        causes[row["hop"]] = _causes(row)
    return causes


def _whole(network: Network, patterns: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    """Return the whole-run pattern rows of a metric, ordered by hop; empty without patterns."""
    if not {"hop", "metric", "is_whole_run", "outcome", "pattern"} <= set(patterns.columns):
        return pl.DataFrame()
    is_hop = pl.col("hop").is_between(0, network.hop_count - 1)
    return patterns.filter(pl.col("is_whole_run"), pl.col("metric") == metric, is_hop).sort("hop")


def _pattern_text(network: Network, row: dict[str, Any], slow_counts: Mapping[str, int]) -> str:
    outer, inner = (plain(plural(layer.name), _MAX_NODE_CHARS) for layer in network.layers[row["hop"] :][:2])
    text = (_PATTERNS if row["outcome"] == "matched" else _NO_PATTERN).get(
        row["pattern"] or row["outcome"], "no pattern"
    )
    sentence = f"{outer} to {inner}: {text.replace('{}', outer)}"
    layers = network.layers[row["hop"] : row["hop"] + 2]
    exceptions = {layer.name: count for layer in layers if (count := slow_counts.get(layer.name, 0))}
    if exceptions and row["pattern"] == "circular":
        exceptions_text = " and ".join(format_count(count, plain(name, 24)) for name, count in exceptions.items())
        sentence = f"{outer} to {inner}: circular: similar at most {outer}, except {exceptions_text}"
    causes = _causes(row)
    if not causes:
        return sentence
    omitted_count = len(causes) - _MAX_CAUSES
    causes_text = ", ".join(node_text(cause) for cause in causes[:_MAX_CAUSES])
    return f"{sentence}; mainly {causes_text}{f' and {omitted_count} more' if omitted_count > 0 else ''}"


def _causes(row: dict[str, Any]) -> list[str]:
    """Return the nodes that cause a named pattern, from a list or from the table's JSON."""
    nodes = row.get("cause_nodes") if row["outcome"] == "matched" else None
    if isinstance(nodes, str):
        try:
            nodes = json.loads(nodes)
        except ValueError:
            return []
    return [str(cause) for cause in nodes] if isinstance(nodes, list) else []


def bottleneck_texts(bottlenecks: pl.DataFrame, metric: Metric, max_count: int) -> list[str]:
    """Describe up to `max_count` outlier requests, one sentence each."""
    if not {"metric", "source_layer", "source_node", "value", "median_value"} <= set(bottlenecks.columns):
        return []
    rows = bottlenecks.filter(pl.col("metric") == metric).head(max_count)
    return [
        f"{shorten(plain(str(row['source_layer'])), _MAX_NODE_CHARS)} {node_text(str(row['source_node']))}: "
        f"{value_text(metric, row['value'])}, median {value_text(metric, row['median_value'])}"
        for row in rows.iter_rows(named=True)
        if row["value"] is not None and row["median_value"] is not None
    ]
