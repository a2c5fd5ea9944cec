"""The interactive page as a file: its data, its size limit, and its safety. `test_browser` tests its behavior."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.reports.networks import page_data as data
from iosig.reports.networks.page import MAX_BYTES, page, write_page
from iosig.reports.networks.scales import fit_scale, slot_counts
from iosig.reports.networks.view import NetworkView
from iosig.transforms.networks.network import METRICS, Layer, Metric, Transfers
from tests.budget import examples
from tests.reports import network_views as views

EVIL = "<img src=x onerror=\"document.title='taken'\">"
QUOTES = "0\"'</script><script>document.title='taken'</script>\u2028&amp;"


class _Reader(HTMLParser):
    """Elements of a page: scripts and styles with their texts, all others with their attributes."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.open: tuple[str, dict[str, str | None]] | None = None
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(content.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open = (tag, dict(attrs)) if tag in {"script", "style"} else None

    def handle_data(self, data: str) -> None:
        if self.open:
            self.raw.append((*self.open, data))
            self.open = None

    def text_of(self, name: str) -> str:
        return next(text for _, attributes, text in self.raw if attributes.get("id") == name)

    @property
    def about(self) -> dict:  # type: ignore[type-arg]
        return json.loads(self.text_of("about"))  # type: ignore[no-any-return]

    def part(self, name: str) -> Iterator[int]:
        """Yield the bytes of a part."""
        return iter(zlib.decompress(base64.b64decode(self.text_of(f"part-{name}"))))


def varint(stream: Iterator[int]) -> int:
    value = shift = 0
    while True:
        byte = next(stream)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def value_of(code: int, bits: int) -> int:
    most, half = 1 << bits, 1 << max(bits - 1, 0)
    if not bits or code < most:
        return code
    octaves, rest = divmod(code - most, half)
    return (half + rest) << (octaves + 1)


def window_cells(reader: _Reader, metric: Metric, window_count: int, bits: int = 0) -> list[dict[int, int]]:
    """Return counts by cell of each window, read value by value."""
    stream = reader.part(f"windows-{metric}")
    lengths = [varint(stream) for _ in range(window_count)]
    cells = []
    for length in lengths:
        last = -1
        for _ in range(length):
            last += varint(stream) + 1
            cells.append(last)
    counts = [value_of(varint(stream), bits) for _ in cells]
    assert next(stream, None) is None
    ends = np.cumsum(lengths)
    return [
        dict(zip(cells[end - length : end], counts[end - length : end], strict=True))
        for end, length in zip(ends, lengths, strict=True)
    ]


def whole_cells(reader: _Reader, metric: Metric, bits: int = 0) -> dict[int, int]:
    stream = reader.part(f"whole-{metric}")
    count = next(one["cellCount"] for one in reader.about["metrics"] if one["name"] == metric)
    gaps = [varint(stream) for _ in range(count)]
    return dict(zip(np.cumsum(np.array(gaps) + 1) - 1, [value_of(varint(stream), bits) for _ in gaps], strict=True))


@pytest.fixture(scope="module")
def view() -> NetworkView:
    return views.small_view()


# ---- numbers


@pytest.mark.parametrize("metric", METRICS)
def test_page_contains_the_counts_of_each_window(view: NetworkView, metric: Metric) -> None:
    reader, network = _Reader(page(view)), view.network
    scale = fit_scale(network, metric)
    for window, found in enumerate(window_cells(reader, metric, network.window_count)):
        counts = slot_counts(network, scale, (window, window + 1)).ravel()
        assert found == {cell: counts[cell] for cell in np.flatnonzero(counts)}
    counts = slot_counts(network, scale).ravel()
    assert whole_cells(reader, metric) == {cell: counts[cell] for cell in np.flatnonzero(counts)}


def test_page_contains_edges_and_their_sums(view: NetworkView) -> None:
    reader, network = _Reader(page(view)), view.network
    stream = reader.part("totals")
    columns = [[varint(stream) for _ in range(network.edges.height)] for _ in range(4)]
    sums = network.totals.group_by("edge").agg(
        pl.exclude("window", "max_transfer_time_s").sum(), pl.col("max_transfer_time_s").max()
    )
    sums = sums.sort("edge")
    assert columns[0] == sums["transfer_count"].to_list()
    assert columns[1] == sums["read_bytes"].to_list()
    assert columns[2] == sums["written_bytes"].to_list()
    longest = [value_of(code, data.LONGEST_BITS) / 1e9 for code in columns[3]]
    np.testing.assert_allclose(longest, sums["max_transfer_time_s"], rtol=1e-5)
    assert [hop["edgeCount"] for hop in reader.about["hops"]] == network.edges["hop"].value_counts().sort("hop")[
        "count"
    ].to_list()


@given(st.lists(st.integers(0, 2**62), max_size=30))
@settings(max_examples=examples(60), deadline=None)
def test_varints_are_leb128(values: list[int]) -> None:
    stream = iter(data.varints(np.array(values, dtype=np.int64)))
    assert [varint(stream) for _ in values] == values
    assert next(stream, None) is None


@given(st.lists(st.integers(-(2**60), 2**60), max_size=30))
@settings(max_examples=examples(40), deadline=None)
def test_signed_varints_alternate(values: list[int]) -> None:
    stream = iter(data.signed_varints(np.array(values, dtype=np.int64)))
    found = [varint(stream) for _ in values]
    assert [(one >> 1) ^ -(one & 1) for one in found] == values


@given(st.lists(st.integers(0, 2**61), min_size=1, max_size=30), st.integers(2, 20))
@settings(max_examples=examples(100), deadline=None)
def test_codes_preserve_leading_digits_and_order(values: list[int], bits: int) -> None:
    values = sorted(values)
    codes = data.codes(np.array(values, dtype=np.int64), bits).tolist()
    assert codes == sorted(codes)
    for value, code in zip(values, codes, strict=True):
        assert abs(value_of(code, bits) - value) <= value * 2.0**-bits * 1.000001
        if value < 1 << bits:
            assert code == value


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=40))
@settings(max_examples=examples(60), deadline=None)
def test_runs_sum_values_of_equal_keys(rows: list[tuple[int, int]]) -> None:
    numbers, values = (np.array([row[place] for row in rows], dtype=np.int64) for place in (0, 1))
    runs = data.Runs.group(numbers)
    plain: dict[int, list[int]] = {}
    for number, value in rows:
        plain.setdefault(number, []).append(value)
    assert runs.keys.tolist() == sorted(plain)
    assert runs.sums(values).tolist() == [sum(plain[key]) for key in sorted(plain)]
    assert runs.max(values.astype(np.float64)).tolist() == [max(plain[key]) for key in sorted(plain)]


# ---- pages above the size limit


def test_detail_decreases_monotonically() -> None:
    steps = list(data.details(64, 100))
    assert steps[0] == data.Detail()
    factors = [step.window_factor for step in steps]
    assert factors == sorted(factors)
    kept = [step.edge_count for step in steps if step.edge_count]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == 1


def test_small_page_has_full_detail(view: NetworkView) -> None:
    about = _Reader(page(view)).about
    assert about["coarser"] == []
    assert about["windowEdges"] == view.network.window_edges_s.tolist()


def test_page_within_the_size_limit_keeps_exact_totals(view: NetworkView) -> None:
    full = page(view)
    parts = [text for _, attributes, text in _Reader(full).raw if (attributes.get("id") or "").startswith("part-")]
    fixed = len(full) - sum(map(len, parts))
    windows = [one for one in _Reader(full).raw if (one[1].get("id") or "").startswith("part-windows")]
    most = fixed + sum(map(len, parts)) - sum(len(one[2]) for one in windows) // 2
    reader = _Reader(content := page(view, most))
    assert len(content) <= most
    assert reader.about["windowEdges"] != view.network.window_edges_s.tolist()
    assert "Values of the whole run are exact." in reader.about["coarser"][0]
    for metric in METRICS:
        counts = slot_counts(view.network, fit_scale(view.network, metric)).ravel()
        assert whole_cells(reader, metric) == {cell: counts[cell] for cell in np.flatnonzero(counts)}


def test_merged_windows_are_sums(view: NetworkView) -> None:
    detail = data.Detail(window_factor=5, slot_factor=3)
    network = view.network
    counts = data.count_slots(network)[0]
    content = data.windows_part(counts, counts.rows, 4, detail)
    stream = iter(zlib.decompress(content))
    lengths = [varint(stream) for _ in range(4)]
    cells = [varint(stream) for _ in range(sum(lengths))]
    sums = [varint(stream) for _ in cells]
    ends = np.cumsum(lengths)
    for place, end in enumerate(ends):
        exact = slot_counts(network, counts.scale, (5 * place, min(5 * place + 5, 16))).sum()
        assert sum(sums[end - lengths[place] : end]) == exact


def test_strongest_edges_are_kept_under_the_size_limit(view: NetworkView) -> None:
    reader = _Reader(page(view, 1000))
    assert sum(hop["edgeCount"] for hop in reader.about["hops"]) == 1
    assert "1 of 24 edges" in reader.about["coarser"][0]
    strongest = view.network.totals.group_by("edge").agg(pl.col("transfer_count").sum())["transfer_count"].max()
    assert varint(reader.part("totals")) == strongest


def test_kept_edges_are_renumbered() -> None:
    rows = pl.DataFrame({"edge": [0, 1, 2, 2, 5], "count": [1, 2, 3, 4, 5]}, schema_overrides={"edge": pl.Int32})
    found = data.renumber_edges(rows, np.array([1, 2, 5]), 6)
    assert found.rows() == [(0, 2), (1, 3), (1, 4), (2, 5)]
    assert found.schema == rows.schema


# ---- the file


def test_page_is_deterministic(view: NetworkView, tmp_path: Path) -> None:
    write_page(view, tmp_path / "one.html")
    write_page(views.small_view(), tmp_path / "other.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["one.html", "other.html"]
    assert (tmp_path / "one.html").stat().st_size < MAX_BYTES


def test_policy_allows_only_the_script_and_style_of_the_page(view: NetworkView) -> None:
    reader = _Reader(page(view))
    policy = next(
        attributes["content"] or "" for name, attributes in reader.elements if attributes.get("http-equiv") is not None
    )
    assert policy.startswith("default-src 'none'; ")
    run = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, attributes, text in reader.raw
        if "type" not in attributes
    }
    assert f"script-src 'sha256-{run['script']}';" in policy
    assert f"style-src 'sha256-{run['style']}';" in policy
    assert "unsafe" not in policy


def test_page_loads_no_resource_and_evaluates_no_text(view: NetworkView) -> None:
    reader = _Reader(page(view))
    asks = {"src", "href", "srcset", "action", "data", "poster", "style"}
    assert [one for one in reader.elements if asks & set(one[1]) or any(name.startswith("on") for name in one[1])] == []
    script = next(text for name, attributes, text in reader.raw if name == "script" and "type" not in attributes)
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "fetch(",
        "XMLHttp",
        "import(",
    ):
        assert word not in script, word


def test_texts_of_logs_are_stored_as_data() -> None:
    layers = (
        Layer("rank", pl.Series([QUOTES, "1\u202e2", "x" * 1000])),
        Layer("host", pl.Series([EVIL])),
    )
    one = Transfers(
        0, np.arange(3), np.zeros(3, np.int64), np.arange(3.0), np.ones(3), np.ones(3), np.ones(3), np.ones(3, np.bool_)
    )
    evil = views.view_of(
        views.network_of(layers, (one,), windows=2, end_s=3.0), title=QUOTES, notes=(EVIL,),
        patterns=views.pattern_row(cause_nodes=[QUOTES], last_window=2),
        bottlenecks=views.bottleneck_row(source_node=QUOTES, target_node=EVIL),
    )  # fmt: skip
    reader = _Reader(content := page(evil))
    assert reader.elements.count(("script", {})) == 1
    assert not any(name == "img" for name, _ in reader.elements)
    assert EVIL.encode() not in content
    labels = reader.about["layers"][0]["labels"]
    assert labels[0] == QUOTES.replace("\u2028", "\ufffd")
    assert labels[1] == "1\ufffd2"
    assert len(labels[2]) == 300
    assert reader.about["layers"][1]["labels"] == [EVIL]
    assert reader.about["patterns"][0]["causes"] == [labels[0]]
    assert re.search(r"<title>.*</title>", content.decode()) is not None


def test_patterns_of_the_table_are_accepted(view: NetworkView) -> None:
    rows = view.patterns.with_columns(
        pl.lit(1.5).alias("window_start_s"), pl.lit(2.5).alias("window_end_s"), pl.lit('["3"]').alias("cause_nodes")
    ).drop("first_window", "last_window")
    about = _Reader(page(views.small_view(patterns=rows))).about
    assert about["patterns"][0]["beganS"] == 1.5
    assert about["patterns"][0]["causes"] == ["3"]
    named = _Reader(page(view)).about["patterns"]
    assert (named[2]["beganS"], named[2]["ceasedS"]) == (5.0, 7.5)


@pytest.mark.parametrize("layer_count", [2, 3, 4])
def test_page_supports_any_number_of_layers(layer_count: int) -> None:
    shape = views.Shape()
    layers = (*views.layers_of(shape), views.labeled("disk", 5))[:layer_count]
    transfers = views.transfers_of(shape)
    if layer_count == 4:
        last = transfers[1]
        transfers = (*transfers, Transfers(2, last.target, last.target % 5, last.at_s, last.time_s, last.size_bytes,
                                           last.bandwidth_bytes_per_s, last.is_read))  # fmt: skip
    network = views.network_of(layers, transfers, kinds=("service_time", "latency", "write_time"))
    about = _Reader(page(views.view_of(network))).about
    assert [hop["timeKind"] for hop in about["hops"]] == list(network.time_kinds)
    assert len(about["timeline"][0]) == layer_count - 1


def test_unknown_times_have_no_cells() -> None:
    shape = views.Shape()
    unknown = tuple(
        Transfers(part.hop, part.source, part.target, part.at_s, np.full_like(part.at_s, np.nan), part.size_bytes,
                  np.full_like(part.at_s, np.nan), part.is_read)
        for part in views.transfers_of(shape)
    )  # fmt: skip
    about = _Reader(page(views.view_of(views.network_of(views.layers_of(shape), unknown)))).about
    assert [len(one["lowest"]) > 0 for one in about["metrics"]] == [False, True, False]
    assert [one["cellCount"] > 0 for one in about["metrics"]] == [False, True, False]
