"""The picture of a network: visible outliers, exact texts, explained empty pictures, and safe names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from iosig.reports import panels, style
from iosig.reports.networks import labels as radial_labels, picture
from iosig.reports.networks.colors import colors, unused_color
from iosig.reports.networks.edges import HopEdges, edge_image
from iosig.reports.networks.matrix import mean_values
from iosig.reports.networks.picture import draw
from iosig.reports.networks.texts import distinct, log_ticks, pattern_texts, value_text
from iosig.reports.networks.view import NetworkView, SlowNodes
from iosig.transforms.networks.counting import EdgeCounter
from iosig.transforms.networks.network import Layer, Network, Transfers
from iosig.transforms.networks.rings import Ring, compute_layout
from tests.budget import examples, one_in
from tests.drawn_figures import assert_drawn_alike, figure_of

pytestmark = pytest.mark.filterwarnings("error")

ROOT = Path(__file__).resolve().parents[3]
NOTHING = pl.DataFrame()
GRAY = unused_color(is_dark=False)


def layer(name: str, count: int, label: str = "{}") -> Layer:
    return Layer(name, pl.Series([label.format(node) for node in range(count)], dtype=pl.String))


def network(
    layers: Sequence[Layer], time_s: float | None = 0.01, slow: Sequence[int] = (), count: int = 200, windows: int = 4
) -> Network:
    """Requests of all nodes in turn, of 0.01 s; requests of slow nodes take 100 times as long."""
    counter = EdgeCounter(tuple(layers), ("latency",) * (len(layers) - 1), np.linspace(0.0, 8.0, windows + 1))
    nodes = [one.node_count for one in layers]
    if all(nodes):
        for hop in range(len(layers) - 1):
            source = np.arange(max(count, nodes[hop])) % nodes[hop]
            times = np.full(len(source), np.nan if time_s is None else time_s)
            if hop == 0:
                times[np.isin(source, slow)] *= 100
            one, sizes = np.ones(len(source)), np.full(len(source), 1e6)
            target = source * nodes[hop + 1] // nodes[hop]
            at_s = np.linspace(0.0, 3.9, len(source))
            rates = np.divide(sizes, times, out=np.full(len(source), np.nan), where=times > 0)
            counter.add(Transfers(hop, source, target, at_s, times, sizes, rates, one > 1))
    return counter.result()


def view(one: Network, **fields: object) -> NetworkView:
    plain: dict[str, object] = {"patterns": NOTHING, "bottlenecks": NOTHING}
    return NetworkView("run.darshan", one, compute_layout(one), **(plain | fields))  # type: ignore[arg-type]


SMALL = network([layer("rank", 16), layer("host", 4, "nid0000{}"), layer("target", 2, "OST {}")], slow=[5])


def composed(one: NetworkView) -> Figure:
    """A figure without its edges."""
    with patch.object(picture, "edge_image", return_value=np.zeros((2, 2, 4), dtype=np.uint8)):
        return painted(one)


def painted(one: NetworkView, few_nodes: int = 0) -> Figure:
    """The figure, drawn as rings, or as matrices if it has fewer nodes than `few_nodes`."""
    with patch("iosig.reports.networks.view.FEW_NODES", few_nodes):
        return figure_of(draw(one))


def texts(holder: Axes | Figure) -> list[str]:
    return [text.get_text() for text in holder.texts]


def disc(figure: Figure) -> Axes:
    return figure.axes[0]


def edges_of(figure: Figure) -> np.ndarray:
    return np.asarray(disc(figure).images[0].get_array())


# ---- edges


def straight(levels: np.ndarray, width: float = 1.0) -> HopEdges:
    angles = np.arange(len(levels)) * 2 * np.pi / len(levels)
    return HopEdges(angles, angles, 0.9, 0.3, levels.astype(np.int16), colors(0, is_dark=False), width)


def test_high_values_are_drawn_outward() -> None:
    """An edge to the right of the center, of three slots: the outermost third is the highest value."""
    hop = replace(
        straight(np.array([[-1, 0, 255]]), 3.0), began_angles=np.full(1, np.pi / 2), ceased_angles=np.full(1, np.pi / 2)
    )
    image = edge_image([hop], 100, GRAY)
    assert image.shape == (200, 200, 4)
    row = image[100]
    for radius, color in ((40, GRAY), (60, hop.colors[0]), (80, hop.colors[255])):
        assert row[100 + radius].tolist() == [*color.tolist(), 255]
    assert not row[:125, 3].any()
    assert not row[195:, 3].any()


def test_edges_stay_between_their_rings() -> None:
    generator = np.random.default_rng(1)
    hop = HopEdges(
        generator.random(300) * 7, generator.random(300) * 7, 0.9, 0.4, np.zeros((300, 5), dtype=np.int16),
        colors(1, is_dark=False), 1.0,
    )  # fmt: skip
    image = edge_image([hop], 150, GRAY)
    down, across = np.nonzero(image[..., 3])
    reach = np.hypot(down - 149.5, across - 149.5) / 150
    assert reach.min() > 0.4 - 0.02
    assert reach.max() < 0.9 + 0.02


@pytest.mark.parametrize("edge_count", [256, 20_000])
def test_single_outlier_among_many_edges_is_visible(edge_count: int) -> None:
    """With more edges than pixels around, the single value at the edge keeps its full color."""
    levels = np.full((edge_count, 50), -1)
    levels[:, 20] = 255
    levels[edge_count // 3, 49] = 0
    image = edge_image([straight(levels)], 300, GRAY)
    # Only low counts are dark blue.
    is_few = (np.abs(image[..., :3].astype(int) - colors(0, is_dark=False)[0]).sum(axis=2) < 200) & (
        image[..., 3] > 100
    )
    down, across = np.nonzero(is_few)
    reach = np.hypot(down - 299.5, across - 299.5) / 300
    assert (reach > 0.87).any()


def test_edges_with_more_transfers_are_drawn_on_top_in_any_order() -> None:
    levels = np.array([[10], [200], [90]])
    for order in ([0, 1, 2], [2, 1, 0]):
        hop = replace(straight(levels[order]), began_angles=np.zeros(3), ceased_angles=np.zeros(3))
        image = edge_image([hop], 50, GRAY)
        shown = {tuple(color) for color in image[image[..., 3] > 0][:, :3].tolist()}
        assert shown == {tuple(hop.colors[200].tolist())}


def test_image_without_edges_is_transparent() -> None:
    assert not edge_image([straight(np.empty((0, 1)))], 20, GRAY).any()
    assert not edge_image([], 20, GRAY).any()


def test_number_of_edge_points_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iosig.reports.networks.edges._MAX_POINTS", 1000)
    levels = np.full((500, 10), -1)
    levels[250, 9] = 0
    image = edge_image([straight(levels)], 200, GRAY)
    shown = image[image[..., 3] > 0][:, :3].astype(int)
    assert (np.abs(shown - colors(0, is_dark=False)[0]).sum(axis=1) < 10).any()


# ---- the picture


def test_slow_rank_is_visible_at_the_edge_of_the_circle() -> None:
    image = edges_of(painted(view(SMALL)))
    radius = image.shape[0] // 2
    down, across = np.nonzero(image[..., 3])
    is_colored = np.ptp(image[down, across, :3].astype(int), axis=1) > 60
    x, y = across - radius + 0.5, radius - 0.5 - down
    is_outward = (np.hypot(x, y) / radius > 0.93) & is_colored
    angles = np.degrees(np.arctan2(x[is_outward], y[is_outward])) % 360
    assert angles == pytest.approx(np.full(len(angles), 360 * 5.5 / 16), abs=3)
    assert len(angles) > 3


@pytest.mark.parametrize("metric", one_in(3, ["time", "size", "bandwidth"]))
def test_each_metric_is_drawn(metric: str) -> None:
    figure = painted(view(SMALL, metric=metric))
    told = " ".join(texts(figure))
    assert ("latency" if metric == "time" else metric) in told
    assert "rank" in told
    assert edges_of(figure)[..., 3].any()


@pytest.mark.parametrize(
    "counts", one_in(3, zip([(1, 1), (4, 1), (64, 5), (9, 7, 5, 3, 2), (300, 20, 41), (8192, 32, 8), (30, 12, 6, 2)]))
)
def test_networks_of_any_size_are_drawn(counts: tuple[int, ...]) -> None:
    one = network([layer(f"layer{number}", count, f"n{number}-{{}}") for number, count in enumerate(counts)])
    figure = painted(view(one))
    assert len(edges_of(figure)[..., 3].nonzero()[0]) > 20
    assert len(disc(figure).texts) < 400


def test_65536_ranks_are_drawn_in_groups() -> None:
    labels = pl.Series([f"{first}-{first + 7}" for first in range(0, 65536, 8)])
    one = network([Layer("rank", labels, 8, 65536), layer("host", 16), layer("target", 4)], count=8192)
    figure = composed(view(one))
    assert "65,536 ranks in 8,192 groups" in " ".join(texts(figure))
    # Labels are round numbers.
    assert {"0", "2048", "4096"} <= set(texts(disc(figure)))


@pytest.mark.parametrize("count", one_in(3, [3, 60, 192, 1000, 1024]))
@pytest.mark.parametrize("label", ["{}", "a-host-{}.example"])
def test_names_around_the_circle_do_not_overlap(count: int, label: str) -> None:
    one = network([layer("rank", count, label), layer("host", 1)])
    with style.drawn_in():
        figure = panels.blank((12.2, 12.2))
        axes = figure.add_axes((0, 0, 1, 1))
        labels = radial_labels.outer_labels(one.layers[0])
        radius = 732 - labels.room
        axes.set(xlim=(-732 / radius, 732 / radius), ylim=(-732 / radius, 732 / radius))
        radial_labels.draw_outer(axes, labels, compute_layout(one).rings[0], radius)
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) >= 3
    frame = axes.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 + 1 for box in boxes)
    assert all(frame.y0 - 1 <= box.y0 and box.y1 <= frame.y1 + 1 for box in boxes)
    if label == "{}":
        assert not [1 for one_box, other in combinations(boxes, 2) if one_box.overlaps(other)]


def test_names_on_rings_are_upright() -> None:
    figure = composed(view(SMALL))
    turned = {text.get_text(): text.get_rotation() for text in disc(figure).texts}
    assert {"nid00000", "nid00003", "OST 0", "OST 1"} <= set(turned)
    assert all(angle <= 90.001 or angle >= 269.999 for angle in turned.values())


def test_idle_nodes_are_drawn_lighter() -> None:
    one = replace(SMALL, edges=SMALL.edges, totals=SMALL.totals.filter(pl.col("edge") > 0))
    faces = np.concatenate([found.get_facecolor() for found in disc(composed(view(one))).collections[:1]])
    shades = {tuple(shade) for shade in faces.tolist()}
    assert len(shades) == 2


def test_only_the_selected_time_is_counted() -> None:
    whole, part = (painted(view(SMALL, windows=windows)) for windows in (None, (0, 1)))
    assert "the whole run" in texts(whole)[1]
    assert "0 s to 2 s of the run" in texts(part)[1]
    assert edges_of(whole).tobytes() != edges_of(part).tobytes()
    shaded = part.axes[-1].patches[0].get_extents().transformed(part.axes[-1].transData.inverted())
    assert (shaded.x0, shaded.x1) == pytest.approx((0.0, 2.0))


def test_timeline_fades_from_the_mean_to_minimum_and_maximum() -> None:
    timeline = composed(view(SMALL)).axes[-2]
    strength = np.asarray(timeline.images[0].get_array())[..., 3].astype(int)
    column = strength[:, strength.max(axis=0).argmax()]
    assert (np.diff(column[: column.argmax()]) >= 0).all()
    assert (np.diff(column[column.argmax() :]) <= 0).all()


# ---- texts


def patterns(**fields: object) -> pl.DataFrame:
    row = {
        "hop": 0,
        "metric": "time",
        "is_whole_run": True,
        "outcome": "matched",
        "pattern": "outlier",
        "cause_nodes": ["5"],
    }
    return pl.DataFrame([row | fields])


@pytest.mark.parametrize("causes", [["5", "7"], json.dumps(["5", "7"])])
def test_patterns_are_described_with_their_causes(causes: object) -> None:
    figure = composed(view(SMALL, patterns=patterns(cause_nodes=causes)))
    told = " ".join(texts(figure))
    assert "outlier: high at few ranks; mainly 5, 7" in re.sub(r"\s+", " ", told)
    marked = [line for line in disc(figure).lines if len(line.get_xdata()) == 2]  # type: ignore[arg-type]
    assert len(marked) == 1


def test_patterns_of_windows_and_other_metrics_are_omitted() -> None:
    assert pattern_texts(SMALL, patterns(is_whole_run=False), "time") == []
    assert pattern_texts(SMALL, patterns(metric="size"), "time") == []
    assert pattern_texts(SMALL, patterns(hop=2), "time") == []
    assert pattern_texts(SMALL, NOTHING, "time") == []
    assert pattern_texts(SMALL, patterns(outcome="too_few_nodes", pattern=None, cause_nodes=None), "time") == [
        "ranks to hosts: no pattern named: too few ranks are active"
    ]


def test_bottlenecks_have_red_circles() -> None:
    rows = pl.DataFrame({
        "metric": ["size", "time"], "bottleneck": [0, 0], "source_layer": ["rank", "rank"], "source_node": ["0", "9"],
        "value": [2e9, 3.0], "median_value": [1e6, 0.01],
    })  # fmt: skip
    figure = composed(view(SMALL, bottlenecks=rows, metric="size"))
    circles = [line for line in disc(figure).lines if len(line.get_xdata())]  # type: ignore[arg-type]
    assert len(circles) == 1
    x, y = np.ravel(circles[0].get_xydata())
    assert np.degrees(np.arctan2(x, y)) == pytest.approx(360 / 32)
    assert "rank 0: 2 GB, median 1 MB" in texts(figure)


def test_special_slots_have_labels() -> None:
    counter = EdgeCounter((layer("rank", 2), layer("host", 1)), ("latency",), np.array([0.0, 1.0]))
    values = np.array([-1.0, 0.0, 0.001, 1.0])
    nodes, nan = np.array([0, 1, 0, 1]), np.full(4, np.nan)
    counter.add(Transfers(0, nodes, nodes * 0, np.zeros(4), values, nan, nan, nodes > 9))
    named = [label.get_text() for axes in composed(view(counter.result())).axes for label in axes.get_yticklabels()]
    assert {"0 and below", "10 ms", "1 s"} <= set(named)


@pytest.mark.parametrize(
    ("one", "fields", "told"),
    [
        (network([layer("rank", 4), layer("host", 2)], time_s=None), {}, "The latency of all transfers is unknown."),
        (SMALL, {"windows": (3, 4)}, "No transfers in the selected time."),
        (network([layer("rank", 0), layer("host", 0)]), {}, "No transfers between ranks and hosts."),
    ],
)
def test_empty_pictures_explain_the_reason(one: Network, fields: dict[str, object], told: str) -> None:
    assert told in texts(disc(composed(view(one, **fields))))


# ---- names from the input


HOSTILE = ["$\\frac{1}{0}$", "\x1b[31mred\x00", "<img src=x onerror=alert(1)>", "n" * 5000, "\u202egpj.exe", ""]


def test_hostile_names_are_drawn_literally(tmp_path: Path) -> None:
    ranks = Layer("rank$^{$\n", pl.Series(HOSTILE))
    hosts = Layer("<b>" + "h" * 3000, pl.Series(HOSTILE[::-1]))
    one = view(network([ranks, hosts]), notes=("\x07bell $x^$",) * 90, patterns=patterns(cause_nodes=HOSTILE))
    one = replace(one, title="../../$\\x$\n<svg onload=1>" * 300)
    draw(one).write(tmp_path / "a.svg")
    content = (tmp_path / "a.svg").read_text()
    assert "<img" not in content
    assert "onload=1>" not in content.replace("&lt;svg onload=1&gt;", "")
    assert "\x1b" not in content


@settings(max_examples=4, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=2, max_size=7, unique=True), st.text(max_size=30))
@pytest.mark.slow
def test_any_names_are_drawn(labels: list[str], name: str) -> None:
    nodes = pl.Series(labels, dtype=pl.String)
    figure = composed(view(network([Layer(name, nodes), Layer("host", nodes)])))
    figure.draw_without_rendering()


def test_common_parts_of_names_are_removed() -> None:
    assert distinct(["nid00012.lan", "nid00034.lan"]) == ["00012", "00034"]
    assert distinct(["a", "b"]) == ["a", "b"]
    assert distinct(["c36n01", "c36n02"]) == ["01", "02"]
    assert distinct(["x1", "x"]) == ["x1", "x"]
    assert distinct(["only.lan"]) == ["only.lan"]
    assert distinct(["same", "same"]) == ["same", "same"]


# ---- numbers


def test_values_are_formatted_with_units() -> None:
    assert value_text("time", 0.0025) == "2.5 ms"
    assert value_text("time", 3e-7) == "300 ns"
    assert value_text("time", 7200.0) == "7.2e+03 s"
    assert value_text("size", 4e6) == "4 MB"
    assert value_text("bandwidth", 2e9) == "2 GB/s"


@settings(max_examples=examples(60), deadline=None)
@given(st.floats(1e-300, 1e300), st.floats(1.0, 1e300), st.integers(3, 9))
def test_ticks_are_few_and_within_the_range(low: float, ratio: float, most: int) -> None:
    high = min(low * ratio, 1e305)
    ticks = log_ticks(low, high, most)
    assert 1 <= len(ticks) <= most
    assert (ticks >= low * 0.999999).all()
    assert (ticks <= high * 1.000001).all()
    assert (np.diff(ticks) > 0).all()


@pytest.mark.parametrize(
    ("low", "high"), [(0.92e6, 1.45e6), (9.29e-3, 11.1e-3), (1.0, 2.0), (5.0, 5.0001), (1.0, 81.0)]
)
def test_ticks_are_well_separated(low: float, high: float) -> None:
    ticks = log_ticks(low, high, 4)
    assert (np.diff(np.log(ticks)) >= np.log(high / low) / 4 * 0.999).all()


@pytest.mark.parametrize(
    ("value", "text"), [(999.9e-6, "1 ms"), (999.4e-6, "999 µs"), (1e-3, "1 ms"), (0.0, "0 s"), (59.0, "59 s")]
)
def test_unit_is_chosen_after_rounding(value: float, text: str) -> None:
    assert value_text("time", value) == text


def test_ring_without_nodes_has_no_labels() -> None:
    nothing = np.empty(0)
    with style.drawn_in():
        axes = panels.blank((2, 2)).add_axes((0, 0, 1, 1))
        radial_labels.draw_inner(
            axes, layer("host", 0), Ring(0.3, 0.5, nothing.astype(np.int64), nothing, nothing), 500, []
        )
    assert not axes.texts


def test_groups_are_labeled_by_their_first_member() -> None:
    named = radial_labels._first_members(
        Layer("host", pl.Series(["0-15", "nid1 to nid16", "a\nto b to c", "plain"]), group_size=16)
    )
    assert named.to_list() == ["0", "nid1", "a\nto b", "plain"]


def test_last_label_does_not_touch_the_first() -> None:
    assert radial_labels._select_label_positions(10, 3).tolist() == [0, 3, 6]
    assert radial_labels._select_label_positions(9, 3).tolist() == [0, 3, 6]
    assert radial_labels._select_label_positions(5, 1).tolist() == [0, 1, 2, 3, 4]
    assert radial_labels._select_label_positions(2, 5).tolist() == [0]


@pytest.mark.parametrize(("time_s", "said"), [(0.0, "all values are 0"), (-1.0, "no values are above 0")])
def test_timeline_without_lengths_explains_the_reason(time_s: float, said: str) -> None:
    figure = composed(view(network([layer("rank", 16), layer("host", 4)], time_s=time_s)))
    assert said in [text for axes in figure.axes for text in texts(axes)]


# ---- the file


@pytest.mark.slow
@pytest.mark.parametrize("kind", one_in(2, ["png", "svg"]))
def test_picture_is_deterministic(kind: str, tmp_path: Path) -> None:
    assert_drawn_alike(draw(view(SMALL, notes=("A note.",), patterns=patterns())), tmp_path, kind)


def test_svg_has_edges_as_pixels_and_other_parts_as_paths(tmp_path: Path) -> None:
    one = network([layer("rank", 2048), layer("host", 32), layer("target", 8)], count=2048)
    draw(view(one)).write(tmp_path / "a.svg")
    content = (tmp_path / "a.svg").read_text()
    assert "<image" in content
    assert content.count("<path") < 2500
    assert len(content) < 3_000_000


# ---- slow nodes


SLOW = (SlowNodes("rank", 16, 2, ("5", "7"), (100.0, 2.5)), SlowNodes("host", 4, 0, ("nid00001",), (1.2,)))


def test_slow_nodes_are_listed_before_patterns_of_most_nodes() -> None:
    rows = [
        {
            "hop": hop,
            "metric": "time",
            "is_whole_run": True,
            "outcome": "matched",
            "pattern": "circular",
            "cause_nodes": "[]",
        }
        for hop in (0, 1)
    ]
    figure = composed(view(SMALL, patterns=pl.DataFrame(rows), slow=SLOW))
    told = texts(figure)
    assert told[0] == "Slow: rank 5 \u00d7 100, slowest of 16 (1 more)"
    assert to_hex(figure.texts[0].get_color()).upper() == style.LIGHT.vermilion
    said = " ".join(" ".join(told).split())
    assert "ranks to hosts: circular: similar at most ranks, except 2 ranks" in said
    assert "hosts to targets: circular: similar at all hosts" in said
    assert told.index("Slow: time relative to the layer's median") < told.index("Patterns of most nodes, whole run")


def test_slowest_nodes_are_labeled_at_their_place() -> None:
    figure = composed(view(SMALL, slow=SLOW))
    named = [text for text in disc(figure).texts if "\u00d7" in text.get_text()]
    assert {text.get_text() for text in named} <= {"rank 5 \u00d7 100", "rank 7 \u00d7 2.50"}
    assert named[0].get_text() == "rank 5 \u00d7 100"
    assert composed(view(SMALL)).texts[0].get_text() == "run.darshan", "nobody can be compared"
    alike = composed(view(SMALL, slow=SLOW[1:]))
    assert alike.texts[0].get_text() == "No slow nodes: none takes twice as long as the median of its layer"
    assert [text for text in disc(alike).texts if "\u00d7" in text.get_text()] == []


# ---- matrices of few nodes

FEW = network([layer("rank", 8), layer("host", 3, "nid0000{}"), layer("target", 2, "OST {}")], slow=[5])


def test_fewer_than_sixteen_nodes_are_drawn_as_a_matrix_of_means() -> None:
    one = view(FEW, slow=(SlowNodes("rank", 8, 1, ("5",), (100.0,)),))
    assert one.is_small
    assert not view(SMALL).is_small, "sixteen ranks"
    means = mean_values(one, 0)
    known = np.isfinite(means)
    assert known.sum(axis=1).tolist() == [1] * 8
    assert means[known].tolist() == pytest.approx([0.01] * 5 + [1.0] + [0.01] * 2)
    assert mean_values(replace(one, metric="size"), 0)[known].tolist() == pytest.approx([1e6] * 8)
    assert mean_values(replace(one, metric="bandwidth"), 0)[5, 1] == pytest.approx(1e6)
    figure = painted(one, few_nodes=16)
    ranks = figure.axes[0]
    assert sorted(texts(ranks)) == ["1 s", *["10 ms"] * 7]
    assert [label.get_text() for label in ranks.get_yticklabels()][5] == "5 \u00d7 100"
    assert ranks.get_title(loc="left") == "ranks (rows) to hosts (columns): mean latency"


def test_matrix_contains_only_the_selected_time() -> None:
    # The last window has no transfers.
    assert not view(FEW, windows=(3, 4)).is_small
    whole, half = (mean_values(view(FEW, metric="size", windows=ends), 1) for ends in ((0, 4), (0, 1)))
    assert np.isfinite(half).sum() <= np.isfinite(whole).sum()
