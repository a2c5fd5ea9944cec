"""Naive implementation of `iosig.transforms.networks.rows`: each edge and window is looked up separately."""

from __future__ import annotations

from typing import Any

from iosig.transforms.networks.network import METRICS, Network


def edge_rows(network: Network) -> list[dict[str, Any]]:
    """The rows of all edges, by edge, then by window."""
    totals = {(row["edge"], row["window"]): row for row in network.totals.to_dicts()}
    counts = network.counts.to_dicts()
    edges = network.edges.to_dicts()
    found = []
    for edge, window in sorted(totals):
        hop, total = edges[edge]["hop"], totals[edge, window]
        outer, inner = network.layers[hop], network.layers[hop + 1]
        row = {
            "hop": hop,
            "source_layer": outer.name,
            "target_layer": inner.name,
            "source_node": outer.labels[edges[edge]["source"]],
            "target_node": inner.labels[edges[edge]["target"]],
            "time_window": window,
            "window_start_s": float(network.window_edges_s[window]),
            "window_end_s": float(network.window_edges_s[window + 1]),
            "time_kind": network.time_kinds[hop],
            "transfer_count": total["transfer_count"],
            "read_bytes": round(total["read_bytes"]),
            "written_bytes": round(total["written_bytes"]),
            "timed_count": sum(
                c["count"]
                for c in counts
                if (c["edge"], c["window"], c["metric"]) == (edge, window, 0) and c["bin"] > -32768
            ),
            "transfer_time_s": total["transfer_time_s"],
            "max_transfer_time_s": total["max_transfer_time_s"],
        }
        for number, metric in enumerate(METRICS):
            own = [c for c in counts if (c["edge"], c["window"], c["metric"]) == (edge, window, number)]
            own.sort(key=lambda count: count["bin"])
            row[f"{metric}_bins"] = [count["bin"] for count in own]
            row[f"{metric}_counts"] = [count["count"] for count in own]
        found.append(row)
    return found
