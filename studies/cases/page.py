"""Compute the template variables and figures of the page `docs/cases-study.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from iosig.reports.networks.comparison import draw_comparison
from iosig.reports.networks.view import NetworkView, share_scales
from iosig.studies.cases.planted import AGGREGATION, CASES
from iosig.studies.cases.running import Results
from iosig.studies.pages import Draw
from iosig.transforms.networks.rings import compute_layout


def document(results: Results) -> dict[str, pl.DataFrame]:
    """Return the tables of the results for JSON."""
    return {"runs": results.runs}


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    runs = {row["case"]: row for row in results.runs.iter_rows(named=True)}
    return {"runs": results.runs, "claims": list_claims(runs), "AGGREGATION": AGGREGATION}


def list_claims(runs: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the paper's statements on its figures, with the measures of our runs and whether they agree."""
    small, large, collective, metadata = (runs[case.name] for case in CASES)
    claims: list[tuple[str, str, str, bool]] = [
        (
            "r444 has a much wider distribution of latencies than r222 (Figures 7 and 8)",
            f"1 % to 99 %: {large['range_octaves']:.2f} octaves, r222 {small['range_octaves']:.2f}",
            "r444 larger",
            large["range_octaves"] > small["range_octaves"],
        ),
        (
            "a very large request of process 0 in r444 only (Figure 12)",
            f"rank of the largest outlier: r444 {_show(large['outlier_rank'])}, r222 {_show(small['outlier_rank'])}",
            "rank 0, and none",
            large["outlier_rank"] == 0 and small["outlier_rank"] is None,
        ),
        (
            "alternating high and low latencies over the ranks of r222 (Figures 7 and 10)",
            f"{small['pattern']}, {small['right_count']} of {small['cause_count']} causes are aggregators",
            "striped or outlier, causes are aggregators",
            small["pattern"] in ("striped", "outlier") and small["right_count"] == small["cause_count"],
        ),
        (
            "HDF5 is much noisier than PNetCDF (Figure 13)",
            f"{metadata['pattern']}, PNetCDF {collective['pattern']}",
            "noisy, and circular",
            (metadata["pattern"], collective["pattern"]) == ("noisy", "circular"),
        ),
        (
            "low latencies in the first phase of FLASH-IO (Figures 14 and 15)",
            f"mean {1e3 * collective['first_half_s']:.3g} ms, then {1e3 * collective['second_half_s']:.3g} ms",
            "first half lower",
            collective["first_half_s"] < collective["second_half_s"],
        ),
        (
            "HDF5 has a smaller difference between the largest and smallest latencies (Figure 13)",
            f"1 % to 99 %: {metadata['range_octaves']:.2f} octaves, PNetCDF {collective['range_octaves']:.2f}",
            "HDF5 smaller",
            metadata["range_octaves"] < collective["range_octaves"],
        ),
    ]
    names = ("paper", "measured", "expected")
    return [dict(zip(names, claim[:3], strict=True)) | {"agrees": "yes" if claim[3] else "**no**"} for claim in claims]


def _show(rank: int | None) -> str:
    return "none" if rank is None else str(rank)


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {
        name: draw_comparison(_make_views(results, [case.name for case in CASES if case.study == study])).write
        for name, study in (("chombo", "Chombo"), ("flash", "FLASH-IO"))
    }


def _make_views(results: Results, names: Sequence[str]) -> tuple[NetworkView, ...]:
    return share_scales(
        [
            NetworkView(
                name,
                results.networks[name],
                compute_layout(results.networks[name]),
                results.patterns[name],
                pl.DataFrame(),
            )
            for name in names
        ]
    )
