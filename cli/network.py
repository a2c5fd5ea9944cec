"""`iosig network`: show the transfers between the nodes of a traced run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import GlobalOptions, exit_code, json_option, strict_option, style_option
from iosig.cli.windows import WindowText, read_window

if TYPE_CHECKING:
    import polars as pl

    from iosig.answers.single.networks import NetworkInput
    from iosig.reports.networks.view import NetworkView
    from iosig.reports.style import Style
    from iosig.transforms.networks.network import Layer, Metric, Network

#: maximum number of nodes listed for a layer
#: maximum number of nodes listed for a layer if all are similar
#: maximum number of outlier requests listed for each metric
#: maximum number of nodes named as causes of a pattern
_MAX_NODES, _MAX_NODES_IF_SIMILAR, _MAX_REQUESTS_PER_METRIC, _MAX_CAUSES = 8, 3, 5, 2
#: maximum length of a name from the input
#: maximum length of a sentence with text from the input
_MAX_NAME_CHARS, _MAX_SENTENCE_CHARS = 20, 600
#: nodes are similar if the slowest takes less than this multiple of the median time
_SIMILAR_RATIO = 1.25


@click.command("network")
@click.argument(
    "traces", metavar="TRACE [TRACE]", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True)
)
@click.option("--compare", is_flag=True, help="Show two traces side by side, on one scale of values, colors and times.")
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), help="Draw the radial view into this PNG.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the radial view into this SVG.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a self-contained interactive HTML page."
)
@click.option(
    "--metric",
    type=click.Choice(["time", "size", "bandwidth"]),
    default="time",
    show_default=True,
    help="Metric of the pictures. The page has a menu for it.",
)
@click.option(
    "--window", metavar="A:B", callback=read_window, help="Restrict to the time from A to B, in seconds of the run."
)
@click.option("--layers", help="Layers, outermost first: two or more of rank, host, module, file, filesystem, target.")
@click.option("--module", help="Module of the requests. Default: POSIX if traced, else the one with most bytes.")
@click.option(
    "--windows", "window_count", type=click.IntRange(1, 4096), help="Number of time windows. Default: the setting."
)
@click.option(
    "--max-nodes",
    type=click.IntRange(2, 1 << 16),
    help="Maximum number of nodes per layer. Larger layers are grouped. Default: the setting.",
)
@style_option
@json_option
@strict_option
@click.pass_obj
def network_command(
    warehouse: GlobalOptions,
    traces: tuple[Path, ...],
    compare: bool,
    png: Path | None,
    svg: Path | None,
    html: Path | None,
    metric: Metric,
    window: WindowText | None,
    layers: str | None,
    module: str | None,
    window_count: int | None,
    max_nodes: int | None,
    style: Style,
    as_json: bool,
) -> int:
    """Show which nodes talked to which in a traced run, how fast, and which are in trouble (radial view).

    TRACE is a Darshan log with DXT, a Recorder, DFTracer or TMIO trace, a file of request events, or a compressed
    trace.
    """
    from iosig.answers.single.networks import read_network
    from iosig.estimates.networks.builder import Query
    from iosig.traces.extrapolation.compression import keep_apart
    from iosig.transforms.networks.network import NetworkParams
    from iosig.warehouse.errors import UsageError

    if window is not None and window.is_instants:
        raise UsageError("Give the window as A:B, in seconds from the start of the run.")
    _check_traces(traces, is_comparison=compare, as_json=as_json)
    targets = [target for target in (png, svg, html) if target is not None]
    for target in targets:
        keep_apart(target, traces)
    _check_targets(targets)
    settings = warehouse.settings()
    params = NetworkParams(
        window_count or settings.networks.window_count,
        max_nodes or settings.networks.max_node_count,
        settings.networks.clock_center,
    )
    query = Query(None if layers is None else tuple(part.strip() for part in layers.split(",")), module)
    results = [read_network(path, settings, query, params) for path in traces]
    if window is not None:
        results = [result.within((window.start_s, window.end_s)) for result in results]
    _draw(results, metric, style, png=png, svg=svg, html=html)
    if as_json:
        from iosig.cli.printing import show_json

        show_json(results[0].build_document())
    else:
        for result in results:
            _show(result)
    return exit_code(sum(result.refused_count for result in results))


def _check_traces(traces: tuple[Path, ...], *, is_comparison: bool, as_json: bool) -> None:
    """Raise UsageError unless there is one trace, or two for a comparison."""
    from iosig.warehouse.errors import UsageError

    if is_comparison and len(traces) != 2:
        raise UsageError("--compare needs two traces.")
    if len(traces) > 1 and not is_comparison:
        raise UsageError("Pass one trace, or two with --compare.")
    if is_comparison and as_json:
        raise UsageError("--json describes one trace: run it for each without --compare.")


# ---- pictures


def _check_targets(targets: list[Path]) -> None:
    """Raise UsageError if a picture cannot be written, before any input is read."""
    from iosig.warehouse.errors import UsageError

    if len({target.resolve() for target in targets}) < len(targets):
        raise UsageError("--plot, --svg and --html need different files.")
    for target in targets:
        if target.exists() and not target.is_file():
            raise UsageError(f"{target} exists and is not a regular file. Choose another name.")
        folder = next(parent for parent in target.absolute().parents if parent.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(f"{target} cannot be written: {folder} is not a writable folder.")


@contextmanager
def _report_write_errors(target: Path) -> Iterator[None]:
    from iosig.warehouse.errors import UsageError

    try:
        yield
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}.") from error


def _draw(
    results: list[NetworkInput], metric: Metric, style: Style, *, png: Path | None, svg: Path | None, html: Path | None
) -> None:
    views = _build_views(results, metric) if png or svg or html else ()
    for path, kind in ((png, "png"), (svg, "svg")):
        if path is not None:
            from iosig.reports.networks.comparison import draw_comparison
            from iosig.reports.networks.picture import draw

            with _report_write_errors(path):
                (draw_comparison(views) if len(views) > 1 else draw(views[0])).write(path, style, kind)
            click.echo(f"Drawn: {path}", err=True)
    if html is not None:
        from iosig.reports.networks.page import write_comparison, write_page

        with _report_write_errors(html):
            if len(views) > 1:
                write_comparison(views, html)
            else:
                write_page(views[0], html)
        click.echo(f"Written: {html}", err=True)


def _build_views(results: list[NetworkInput], metric: Metric) -> tuple[NetworkView, ...]:
    """Build the views of all runs on common scales."""
    from iosig.reports.networks.view import share_scales
    from iosig.warehouse.errors import UsageError

    try:
        return share_scales([result.view(metric) for result in results])
    except ValueError as error:
        raise UsageError(f"{str(error)[:1].upper()}{str(error)[1:]}. Choose common ones with --layers.") from error


# ---- printing: text from the input has limited length and no terminal control codes


def _show(result: NetworkInput) -> None:
    from iosig.cli.printing import say, show

    network = result.network
    click.echo(_plain(result.name, _MAX_SENTENCE_CHARS))
    for note in result.made.notes:
        say(_plain(note, _MAX_SENTENCE_CHARS))
    if result.windows is not None:
        start_s, end_s = result.span_s
        say(f"Time range: {start_s:.6g} to {end_s:.6g} s of the run, in whole time windows.")
    say(_lead(result))
    click.echo()
    for layer in network.layers:
        _show_nodes(result, layer)
    _show_patterns(result)
    _show_bottlenecks(result)
    show("Layers, outermost first", ("layer", "nodes", "members", "edges inward", "time"), _layers(network))


def _lead(result: NetworkInput) -> str:
    """Return a sentence on the slow nodes, innermost layer first, because the cause is likely there."""
    slow = [text for layer in reversed(result.network.layers) if (text := _describe_slowest(result, layer))]
    if slow:
        return f"Slow, compared with the median of the layer: {'; '.join(slow)}."
    is_compared = any(result.nodes(layer.name)["median_ratio"].count() > 1 for layer in result.network.layers)
    return "No slow nodes: none takes twice as long as the median of its layer." if is_compared else ""


def _describe_slowest(result: NetworkInput, layer: Layer) -> str:
    """Return the slowest node of a layer and the number of other slow ones; empty if none is slow."""
    slow = _slow(result, layer.name)
    if slow.is_empty():
        return ""
    first = slow.row(0, named=True)
    more = f" ({slow.height - 1:,} more)" if slow.height > 1 else ""
    return f"{_node_name(layer, first['node'])}, x {_ratio(first['median_ratio'])}{more}"


def _slow(result: NetworkInput, layer_name: str) -> pl.DataFrame:
    """Return the nodes of a layer with twice the median time or more."""
    from iosig.reports.networks.view import SLOW_RATIO

    nodes = result.nodes(layer_name)
    return nodes.filter(nodes["median_ratio"] >= SLOW_RATIO)


def _node_name(layer: Layer, node: str) -> str:
    """Return a node's name; a bare number is preceded by its layer."""
    name = _plain(node)
    return f"{_plain(layer.name)} {name}" if name[:1].isdecimal() else name


def _layers(network: Network) -> list[tuple[Any, ...]]:
    edges = dict(network.edges.group_by("hop").len().iter_rows())
    kinds: list[str | None] = [kind.replace("_", " ") for kind in network.time_kinds]
    return [
        (_plain(layer.name), layer.node_count, layer.member_count, edges.get(hop), kind)
        for hop, (layer, kind) in enumerate(zip(network.layers, [*kinds, None], strict=True))
    ]


def _show_nodes(result: NetworkInput, layer: Layer) -> None:
    """Print the slowest nodes of a layer, and whether any is slow or all are similar."""
    from iosig.cli.printing import bytes_text, say, show

    nodes = result.nodes(layer.name)
    if nodes.is_empty():
        return
    say(_slowest(nodes, layer))
    if nodes.height == 1:
        click.echo()
        return
    show(
        "",
        (_plain(layer.name), "transfers", "moved", "mean", "x median", "share of time", "longest", "rate"),
        [
            (
                _plain(row["node"]),
                row["transfer_count"],
                bytes_text(row["read_bytes"] + row["written_bytes"]),
                _time(row["mean_s"]),
                _ratio(row["median_ratio"]),
                None if row["time_ratio"] is None else f"{row['time_ratio']:.1%}",
                None if row["mean_s"] is None else _time(row["max_transfer_time_s"]),
                None if not row["bytes_per_s"] else f"{bytes_text(row['bytes_per_s'])}/s",
            )
            for row in nodes.head(_MAX_NODES_IF_SIMILAR if _are_alike(nodes) else _MAX_NODES).iter_rows(named=True)
        ],
        last=("share of time", "rate", "moved"),
    )


def _slowest(nodes: pl.DataFrame, layer: Layer) -> str:
    """Return a sentence that compares the slowest node (the first row) with the others."""
    from iosig.cli.printing import bytes_text
    from iosig.reports.networks.view import SLOW_RATIO
    from iosig.reports.texts import format_count

    first, timed = nodes.row(0, named=True), nodes["mean_s"].drop_nulls()
    subject = format_count(nodes.height, f"active {_plain(layer.name)}{' group' if layer.group_size > 1 else ''}")
    name = _node_name(layer, first["node"])
    if timed.is_empty():
        return f"{subject}; times are unknown."
    if nodes.height == 1:
        volume = bytes_text(first["read_bytes"] + first["written_bytes"])
        count_text = format_count(first["transfer_count"], "transfer")
        mean, longest = _time(first["mean_s"]), _time(first["max_transfer_time_s"])
        return f"{subject}: {name}; {count_text} of {volume}, {mean} each, {longest} at most."
    median_s = float(timed.median())  # type: ignore[arg-type]
    median_text = f"median {_time(median_s)} a transfer"
    if not first["mean_s"]:
        return f"{subject}: all transfers take 0 s."
    if first["median_ratio"] is None:
        return f"{subject}, {median_text}; slowest: {name}, {_time(first['mean_s'])}."
    if _are_alike(nodes):
        return f"{subject}, all similar: {median_text}, slowest x {_ratio(first['median_ratio'])}."
    slow_count = int((timed >= SLOW_RATIO * median_s).sum())
    count_text = f"; {slow_count:,} at twice the median or more" if slow_count else ""
    return f"{subject}, {median_text}; slowest: {name}, x {_ratio(first['median_ratio'])}{count_text}."


def _are_alike(nodes: pl.DataFrame) -> bool:
    slowest = nodes["median_ratio"][0]
    return slowest is not None and slowest < _SIMILAR_RATIO


def _show_patterns(result: NetworkInput) -> None:
    from iosig.cli.printing import show

    slow = {layer.name: _slow(result, layer.name).height for layer in result.network.layers}
    period = "the whole run" if result.windows is None else "this time"
    show(
        f"Patterns of {period}, shared by most nodes (but N: N slow nodes)",
        ("from, to", "metric", "pattern", "between nodes", "within nodes", "outliers"),
        [
            (
                f"{_plain(row['source_layer'], 12)}, {_plain(row['target_layer'], 12)}",
                row["metric"],
                _pattern_text(row, slow),
                _factor(row["node_spread"]),
                _factor(row["edge_spread"]),
                _few(row["cause_nodes"]),
            )
            for row in _merge_small_hops(result.whole_patterns().to_dicts())
        ],
    )


def _pattern_text(row: dict[str, Any], slow: dict[str, int]) -> str:
    """Return a pattern, or the reason why none was found; a circular time pattern with the number of slow nodes."""
    if not row["pattern"]:
        return str(row["outcome"]).replace("_", " ")
    count = slow[row["source_layer"]] + slow[row["target_layer"]] if row["metric"] == "time" else 0
    name = str(row["pattern"])
    return f"{name} but {count:,}" if count and name == "circular" else name


def _merge_small_hops(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the patterns; a hop that has too few nodes for any metric becomes one row."""
    outcomes: dict[int, set[str]] = {}
    for row in rows:
        outcomes.setdefault(row["hop"], set()).add(row["outcome"])
    small_hops = {hop for hop, outcome in outcomes.items() if outcome == {"too_few_nodes"}}
    first = {hop: next(row for row in rows if row["hop"] == hop) for hop in small_hops}
    return [
        row | {"metric": "any"} if row["hop"] in small_hops else row
        for row in rows
        if row["hop"] not in small_hops or row is first[row["hop"]]
    ]


def _show_bottlenecks(result: NetworkInput) -> None:
    """Print the first individual requests that are outliers in time or size."""
    from iosig.cli.printing import show
    from iosig.reports.networks.texts import value_text

    bottlenecks = result.bottlenecks()
    if bottlenecks.is_empty():
        return
    first = bottlenecks.group_by("metric", maintain_order=True).head(_MAX_REQUESTS_PER_METRIC)
    more = bottlenecks.height - first.height
    show(
        f"Outlier requests{f' ({more} more: --json)' if more else ''}",
        ("by", "from", "to", "start [s]", "value", "median", "share of total"),
        [
            (
                row["metric"],
                f"{_plain(row['source_layer'], 12)} {_plain(row['source_node'])}",
                _plain(row["target_node"]),
                row["start_s"],
                value_text(row["metric"], row["value"]),
                value_text(row["metric"], row["median_value"]),
                f"{row['share_ratio']:.2%}",
            )
            for row in first.iter_rows(named=True)
        ],
    )


def _time(seconds: float | None) -> str | None:
    from iosig.reports.networks.texts import value_text

    return None if seconds is None else value_text("time", seconds)


def _ratio(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"


def _factor(octaves: float | None) -> str | None:
    """Format a spread in octaves as a factor."""
    return None if octaves is None else f"x {2**octaves:.3g}"


def _few(names: list[str] | None) -> str | None:
    if not names:
        return None
    more = [f"{len(names) - _MAX_CAUSES} more"] if len(names) > _MAX_CAUSES else []
    return ", ".join([*(_plain(name, 10) for name in names[:_MAX_CAUSES]), *more])


def _plain(text: object, max_chars: int = _MAX_NAME_CHARS) -> str:
    """Return text from the input for printing, without terminal control codes and shortened in the middle."""
    from iosig.reports.texts import printable

    return printable(text, max_chars)
