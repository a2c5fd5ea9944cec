"""Two networks on one scale: shared ranges of values, counts and times, in the picture and in the page."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iosig.reports.networks.comparison import draw_comparison
from iosig.reports.networks.page import write_comparison
from iosig.reports.networks.picture import FigureData
from iosig.reports.networks.view import NetworkView, share_scales
from iosig.reports.style import LIGHT, drawn_in
from iosig.transforms.networks.network import METRICS, TimeKind
from tests.reports.network_views import Shape, small_view


@pytest.fixture(scope="module")
def views() -> tuple[NetworkView, ...]:
    """Two runs, the second with more requests, so that its counts are larger."""
    return share_scales([small_view(), small_view(Shape(requests=120))])


def test_both_runs_have_the_scale_and_colors_of_both(views: tuple[NetworkView, ...]) -> None:
    first, second = (FigureData.from_view(view) for view in views)
    assert first.max_counts == second.max_counts
    assert first.scale.lowest_values.tolist() == second.scale.lowest_values.tolist()
    alone = [FigureData.from_view(replace(view, peers=())) for view in views]
    assert first.max_counts == [
        max(int(run.counts[edges].max()) for run, edges in pairs)
        for pairs in ([(run, run.hops[hop]) for run in (first, second)] for hop in range(2))
    ]
    assert first.scale.highest_values[-1] >= max(run.scale.highest_values[-1] for run in alone) / 1.1
    assert [int(run.counts.sum()) for run in (first, second)] == [int(run.counts.sum()) for run in alone]


def test_picture_has_equal_axes_for_both_runs(views: tuple[NetworkView, ...]) -> None:
    with drawn_in(LIGHT):
        figure = draw_comparison(views).figure()
    limits = [
        (*axes.get_xlim(), *axes.get_ylim()) for axes in figure.axes if axes.get_title("left").startswith("ranks to")
    ]
    assert len(limits) == 2
    assert limits[0] == limits[1]


def test_page_has_a_frame_per_run_with_common_ranges(views: tuple[NetworkView, ...], tmp_path: Path) -> None:
    write_comparison(views, tmp_path / "runs.html")
    text = (tmp_path / "runs.html").read_text()
    pages = [html.unescape(content) for content in re.findall(r'srcdoc="([^"]*)"', text)]
    assert len(pages) == 2
    abouts = [json.loads(re.findall(r'id="about">(.*?)</script>', page)[0]) for page in pages]
    assert abouts[0]["shared"] == abouts[1]["shared"]
    assert [metric["lowest"] for metric in abouts[0]["metrics"]] == [
        metric["lowest"] for metric in abouts[1]["metrics"]
    ]
    figure_data = FigureData.from_view(views[0])
    assert abouts[0]["shared"]["counts"][METRICS.index("time")] == figure_data.max_counts
    timelines = [view.network.timeline.filter(metric=0, hop=0) for view in views]
    assert abouts[0]["shared"]["ranges"][0][0][1] == max(timeline["most"].max() for timeline in timelines)  # type: ignore[type-var]
    # the frames inherit the policy of the page
    policies = set(re.findall(r'Policy" content="([^"]*)"', html.unescape(text)))
    assert len(policies) == 1


def test_a_single_run_has_no_shared_ranges() -> None:
    view = small_view()
    (same,) = share_scales([view])
    assert same.peers == ()


def test_runs_with_different_layers_are_refused() -> None:
    view = small_view()
    network = view.network
    kind: TimeKind = "latency"
    other = replace(view, network=replace(network, time_kinds=(kind,) * network.hop_count))
    with pytest.raises(ValueError, match="the runs have different layers"):
        share_scales([view, other])
    assert np.isfinite(FigureData.from_view(view).scale.highest_values).all()
