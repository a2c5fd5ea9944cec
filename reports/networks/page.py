"""Write a network as one interactive HTML file, in which a reader selects a metric, a time range, nodes and edges.

After Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13), section IV.
The file needs only a browser (Chromium 80, Firefox 113 or Safari 16.4, for `DecompressionStream`). Its content security
policy forbids everything but its own script and style, so it loads nothing. Numbers are deflated and base64-encoded;
text is JSON, escaped so that it cannot end its element. The parts of the script are in `page_parts/`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from iosig.reports.networks import page_data as data
from iosig.reports.networks.colors import colors, unused_color
from iosig.reports.networks.page_data import Detail, SlotCounts
from iosig.reports.networks.texts import slow_finding
from iosig.reports.networks.view import NetworkView, SlowNodes
from iosig.reports.templates import content_policy, environment, script_json
from iosig.reports.texts import printable
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.networks.network import METRICS, STEPS_PER_WINDOW, Network
from iosig.warehouse.placing import atomic_write

#: maximum size of a page [B]: small enough to open without delay and to send by mail
MAX_BYTES = 4_000_000
#: minimum number of edges for which the size of a page is first estimated from a sample of the edges
#: factor by which an estimated size may exceed the true size
_MIN_ESTIMATED_EDGES, _ESTIMATE_TOLERANCE = 1024, 1.02
_PARTS = Path(__file__).with_name("page_parts")
_SCRIPTS = ("numbers", "data", "model", "picture", "rings", "timeline", "details", "search", "panels", "main")
#: maximum length of text from a log
_MAX_TEXT_CHARS = 300


def write_comparison(views: Sequence[NetworkView], path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Write the pages of several runs side by side into one file; the views come from `share_scales`."""
    script, style = _script(), _asset("style.css")
    values = {
        "policy": content_policy(script, style),
        "style": style,
        "titles": [_plain(view.title) for view in views],
        # frames inherit the policy, which permits exactly their script and style
        "pages": [page(view, max_bytes // len(views)).decode("utf-8") for view in views],
    }
    content = environment(_PARTS).get_template("comparison.html").render(values).encode("utf-8")
    with atomic_write(path.absolute()) as temporary:
        temporary.write_bytes(content)


def write_page(view: NetworkView, path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Write the interactive page atomically; the same view always produces the same bytes.

    max_bytes: if the page would exceed this size, its time-resolved data lose resolution.
    """
    with atomic_write(path.absolute()) as temporary:
        temporary.write_bytes(page(view, max_bytes))


def page(view: NetworkView, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the page at the highest level of detail that fits, or at the lowest level if none fits."""
    builder = _Parts(view.network, view)
    content = b""
    for detail in data.details(view.network.window_count, view.network.edges.height):
        if builder.estimate_bytes(detail) > _ESTIMATE_TOLERANCE * max_bytes:
            continue
        parts = builder.parts(detail)
        if sum(map(_base64_size, parts.values())) > max_bytes:
            continue
        content = _assemble_page(view, builder, detail, parts)
        if len(content) <= max_bytes:
            return content
    return content or _assemble_page(view, builder, detail, builder.parts(detail))


@dataclass(frozen=True, slots=True)
class _Whole:
    """Encoded data of the whole run: the edges, the parts, and the number of counts per metric."""

    kept: Ints
    parts: dict[str, bytes]
    cell_counts: list[int]


@dataclass
class _Parts:
    """Compressed parts of a page; parts that do not depend on the level of detail are cached."""

    network: Network
    view: NetworkView
    known: dict[tuple[int, int], _Whole] = field(default_factory=dict)

    @cached_property
    def counts(self) -> tuple[SlotCounts, ...]:
        """Transfer counts per edge and value slot, one entry for each metric."""
        return data.count_slots(self.network, [peer.network for peer in self.view.peers])

    @cached_property
    def timeline(self) -> tuple[bytes, list[list[int]]]:
        """Encoded timeline, and its number of steps by metric and hop."""
        return data.timeline_part(self.network)

    def whole(self, detail: Detail) -> _Whole:
        """Encode the data of the whole run at this level of detail."""
        key = (detail.whole_bits, detail.edge_count)
        if key not in self.known:
            self.known[key] = self._build_whole(detail)
        return self.known[key]

    def _build_whole(self, detail: Detail) -> _Whole:
        edge_indices = data.strongest(self.network, detail.edge_count)
        cells = [
            data.whole_part(self._rows(slot_counts.rows, edge_indices), slot_counts.scale.slot_count, detail)
            for slot_counts in self.counts
        ]
        parts = {
            "edges": data.edges_part(self.network, self.view.layout, edge_indices),
            "timeline": self.timeline[0],
            "totals": data.whole_totals_part(self._rows(self.network.totals, edge_indices), len(edge_indices)),
        }
        parts |= {f"whole-{name}": part for name, (part, _) in zip(METRICS, cells, strict=True)}
        return _Whole(edge_indices, parts, [count for _, count in cells])

    def _rows(self, rows: pl.DataFrame, edge_indices: Ints) -> pl.DataFrame:
        return data.renumber_edges(rows, edge_indices, self.network.edges.height)

    def parts(self, detail: Detail) -> dict[str, bytes]:
        """Encode all data parts at this level of detail, keyed by part name."""
        whole = self.whole(detail)
        totals = self._rows(self.network.totals, whole.kept)
        return whole.parts | self._window_parts(totals, self.counts, detail)

    def _window_parts(self, totals: pl.DataFrame, counts: tuple[SlotCounts, ...], detail: Detail) -> dict[str, bytes]:
        if detail.window_factor >= self.network.window_count:
            return {}
        windows = _window_count(self.network, detail)
        parts = {"windows-totals": data.window_totals_part(totals, windows, detail)}
        for slot_counts, name in zip(counts, METRICS, strict=True):
            parts[f"windows-{name}"] = data.windows_part(slot_counts, slot_counts.rows, windows, detail)
        return parts

    def estimate_bytes(self, detail: Detail) -> int:
        """Estimate the size of all parts from every 8th edge; 0 for a small network."""
        if self.network.edges.height < _MIN_ESTIMATED_EDGES or detail.window_factor >= self.network.window_count:
            return 0

        sizes = map(_base64_size, self._window_parts(*self._sample, detail).values())
        return 8 * sum(sizes) + sum(map(_base64_size, self.whole(detail).parts.values()))

    @cached_property
    def _sample(self) -> tuple[pl.DataFrame, tuple[SlotCounts, ...]]:
        counts = tuple(SlotCounts(slot_counts.scale, _every_eighth(slot_counts.rows)) for slot_counts in self.counts)
        return _every_eighth(self.network.totals), counts


def _every_eighth(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("edge") % 8 == 0).with_columns(pl.col("edge") // 8)


# ---- metadata


def _window_count(network: Network, detail: Detail) -> int:
    return -(-network.window_count // detail.window_factor)


def _about(view: NetworkView, builder: _Parts, detail: Detail) -> dict[str, Any]:
    """Collect the page's metadata: titles, units, scales, notes, and the layout of the encoded parts."""
    network = view.network
    first, last = view.window_range
    edge_indices = builder.whole(detail).kept
    return {
        "title": _plain(view.title),
        "notes": [_plain(note, max_chars=2000) for note in view.notes],
        "coarser": _coarser(view, builder, detail),
        "metric": METRICS.index(view.metric),
        "windows": [first // detail.window_factor, -(-last // detail.window_factor)],
        "windowEdges": _window_edges(network, detail),
        "stepEdges": {
            "began": float(network.window_edges_s[0]),
            "ceased": float(network.window_edges_s[-1]),
            "count": network.window_count * STEPS_PER_WINDOW,
        },
        "detail": {
            "countBits": detail.count_bits,
            "totalBits": detail.total_bits,
            "wholeBits": detail.whole_bits,
            "longestBits": detail.total_bits or data.LONGEST_BITS,
            "wholeLongestBits": data.LONGEST_BITS,
        },
        "layers": [_layer(view, number) for number in range(len(network.layers))],
        "hops": [_hop(network, edge_indices, hop) for hop in range(network.hop_count)],
        "unused": {"light": unused_color(is_dark=False).tolist(), "dark": unused_color(is_dark=True).tolist()},
        "metrics": [_metric(builder, metric, detail) for metric in range(len(METRICS))],
        "timeline": builder.timeline[1],
        "patterns": [_pattern(view.network, row) for row in view.patterns.iter_rows(named=True)],
        "finding": slow_finding(view.slow),
        "slow": [_slow(view, nodes) for nodes in view.slow],
        "shared": _build_shared(view, builder),
        "bottlenecks": [_bottleneck(row) for row in view.bottlenecks.iter_rows(named=True)],
    }


def _build_shared(view: NetworkView, builder: _Parts) -> dict[str, Any] | None:
    """Collect the maximum counts and the range of the timeline by metric and hop, which the peers share."""
    if not view.peers:
        return None
    networks = [view.network, *(peer.network for peer in view.peers)]
    return {
        "counts": data.find_shared_max_counts(networks, builder.counts),
        "ranges": data.find_shared_ranges(networks),
    }


def _window_edges(network: Network, detail: Detail) -> list[float]:
    edges = network.window_edges_s.tolist()
    return [*edges[: -1 : detail.window_factor], edges[-1]]


def _layer(view: NetworkView, number: int) -> dict[str, Any]:
    layer, ring = view.network.layers[number], view.layout.rings[number]
    return {
        "name": _plain(layer.name),
        "labels": [_plain(label) for label in layer.labels],
        "groupSize": layer.group_size,
        "memberCount": layer.member_count,
        "inner": float(ring.inner_radius),
        "outer": float(ring.outer_radius),
    }


def _hop(network: Network, edge_indices: Ints, hop: int) -> dict[str, Any]:
    return {
        "timeKind": network.time_kinds[hop],
        "edgeCount": int((network.edges["hop"].to_numpy()[edge_indices] == hop).sum()),
        "colors": {
            "light": _base64(colors(hop, is_dark=False).tobytes()),
            "dark": _base64(colors(hop, is_dark=True).tobytes()),
        },
    }


def _metric(builder: _Parts, metric: int, detail: Detail) -> dict[str, Any]:
    scale = builder.counts[metric].scale
    return {
        "name": METRICS[metric],
        "lowest": _finite(scale.lowest_values),
        "highest": _finite(scale.highest_values),
        "hasNegative": scale.has_negative,
        "hasZero": scale.has_zero,
        "slotFactor": detail.slot_factor,
        "coarseSlots": data.coarse_slot_count(builder.counts[metric], detail),
        "cellCount": builder.whole(detail).cell_counts[metric],
    }


def _finite(values: Reals) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _plain(text: object, max_chars: int = _MAX_TEXT_CHARS) -> str:
    """Remove control characters from text of a log, and truncate it."""
    return printable(text, max_chars)


def _pattern(network: Network, row: Mapping[str, Any]) -> dict[str, Any]:
    causes = row.get("cause_nodes") or []
    start_s, end_s = _pattern_times(network, row)
    return {
        "hop": int(row["hop"]),
        "metric": METRICS.index(row["metric"]),
        "isWhole": bool(row["is_whole_run"]),
        "beganS": start_s,
        "ceasedS": end_s,
        "outcome": row["outcome"],
        "pattern": row.get("pattern"),
        "nodeCount": int(row["active_node_count"]),
        "nodeSpread": _number(row.get("node_spread")),
        "edgeSpread": _number(row.get("edge_spread")),
        "nodesPerBand": _number(row.get("nodes_per_band")),
        "outlierScore": _number(row.get("outlier_score")),
        "causes": [_plain(label) for label in (json.loads(causes) if isinstance(causes, str) else causes)],
    }


def _pattern_times(network: Network, row: Mapping[str, Any]) -> tuple[float, float]:
    """Return start and end of a pattern, from the table's times or else from its window indices."""
    if "window_start_s" in row:
        return float(row["window_start_s"]), float(row["window_end_s"])
    edges = network.window_edges_s
    return float(edges[int(row["first_window"])]), float(edges[int(row["last_window"])])


def _slow(view: NetworkView, slow: SlowNodes) -> dict[str, Any]:
    """Serialize a layer's slowest nodes as indices, with their ratios to the median time."""
    number = [layer.name for layer in view.network.layers].index(slow.layer)
    labels = view.network.layers[number].labels.to_list()
    return {
        "layer": number,
        "count": slow.node_count,
        "nodes": [labels.index(label) for label in slow.labels],
        "ratios": list(slow.ratios),
    }


def _bottleneck(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metric": METRICS.index(row["metric"]),
        "sourceLayer": _plain(row["source_layer"]),
        "source": _plain(row["source_node"]),
        "targetLayer": _plain(row["target_layer"]),
        "target": _plain(row["target_node"]),
        "beganS": _number(row["start_s"]),
        "value": _number(row["value"]),
        "median": _number(row["median_value"]),
        "score": _number(row["score"]),
        "share": _number(row["share_ratio"]),
    }


def _coarser(view: NetworkView, builder: _Parts, detail: Detail) -> list[str]:
    """Return a note on each loss of detail that keeps the page small; empty at full detail."""
    network, losses = view.network, []
    if detail.count_bits:
        losses.append("counts of single time windows are rounded to 3 %, their sums of bytes to 0.4 %")
    if detail.slot_factor > 1:
        losses.append(f"values within single windows are grouped by {detail.slot_factor} slots")
    if detail.window_factor >= network.window_count > 1:
        losses.append("single time windows are omitted")
    elif detail.window_factor > 1:
        losses.append(f"{detail.window_factor} time windows are merged")
    if detail.whole_bits:
        losses.append("counts are rounded to 0.2 %")
    if detail.edge_count:
        losses.append(_describe_omitted_edges(network, builder.whole(detail).kept))
    end = "" if detail.whole_bits else " Values of the whole run are exact."
    return [f"To keep this page small, {'; '.join(losses)}.{end}"] if losses else []


def _describe_omitted_edges(network: Network, edge_indices: Ints) -> str:
    transfers = np.bincount(network.totals["edge"].to_numpy(), weights=network.totals["transfer_count"].to_numpy())
    share = transfers[edge_indices].sum() / transfers.sum()
    return (
        f"only the strongest {len(edge_indices):,} of {network.edges.height:,} edges are included, with {share:.1%} of "
        "transfers"
    )


# ---- the file


def _assemble_page(view: NetworkView, page_parts: _Parts, detail: Detail, parts: Mapping[str, bytes]) -> bytes:
    """Assemble the final HTML file from the template, the metadata and the encoded parts."""
    style = _asset("style.css")
    script = _script()
    policy = content_policy(script, style)
    values = {
        "policy": policy,
        "title": _plain(view.title),
        "style": style,
        "script": script,
        "about": script_json(_about(view, page_parts, detail)),
        "parts": {name: _base64(content) for name, content in parts.items()},
    }
    return environment(_PARTS).get_template("page.html").render(values).encode("utf-8")


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS) + "})();\n"


def _asset(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _base64_size(content: bytes) -> int:
    return 4 * -(-len(content) // 3)
