"""`iosig network`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.command.windows import WindowText, read_window
from warehouse.store import Store

if TYPE_CHECKING:
    from flows.network_input import NetworkInput
    from transforms.networks import Metric, Network

_REFUSED = 3
#: nodes of a layer that are listed
_LISTED = 8


@click.command("network")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path, exists=True))
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), help="Draw the radial view into this PNG.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw it into this SVG.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write it as one page to explore in a browser."
)
@click.option(
    "--metric",
    type=click.Choice(["time", "size", "bandwidth"]),
    default="time",
    show_default=True,
    help="What the pictures show; the page lets one choose.",
)
@click.option("--window", metavar="A:B", callback=read_window, help="Show what went from A to B, in seconds.")
@click.option("--layers", help="Layers, outermost first: of rank, host, module, file, filesystem, target.")
@click.option("--module", help="Whose requests; POSIX if it was traced, else what moved most.")
@click.option("--windows", "window_count", type=click.IntRange(1, 4096), help="Time windows; else the settings' count.")
@click.option(
    "--most-nodes",
    type=click.IntRange(2, 1 << 16),
    help="With more in a layer, some are one; else the settings' count.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def network_command(
    obj: tuple[Store, Path | None],
    path: Path,
    png: Path | None,
    svg: Path | None,
    html: Path | None,
    metric: Metric,
    window: WindowText | None,
    layers: str | None,
    module: str | None,
    window_count: int | None,
    most_nodes: int | None,
    as_json: bool,
) -> int:
    """Show which nodes talked to which in a traced run, how fast, and which are in trouble (radial view).

    TRACE is a Darshan log with DXT, a Recorder or TMIO trace, a file of request events, or a compressed trace.
    """
    from flows.network_input import network_input
    from flows.networks import Asked
    from flows.settings import load
    from transforms.networks import NetworkParams
    from warehouse.errors import UsageError

    if window is not None and window.is_instants:
        raise UsageError("A run's time is in seconds from its start: give the window as A:B.")
    settings = load(obj[1], obj[0].root)
    params = NetworkParams(
        window_count or settings.networks.window_count, most_nodes or settings.networks.most_node_count
    )
    asked = Asked(tuple(part.strip() for part in layers.split(",")) if layers else None, module)
    found = network_input(path, settings, asked, params)
    _draw(found, metric, window, png=png, svg=svg, html=html)
    if as_json:
        from flows.command.printing import show_json

        show_json(found.document())
    else:
        _show(found)
    if found.refused_count:
        click.echo(f"{found.refused_count:,} rows were refused; `iosig land` keeps them with the reasons.", err=True)
    return _REFUSED if found.refused_count else 0


def _draw(
    found: NetworkInput,
    metric: Metric,
    window: WindowText | None,
    *,
    png: Path | None,
    svg: Path | None,
    html: Path | None,
) -> None:
    span = None if window is None else (window.start_s, window.end_s)
    view = found.view(metric, span) if png or svg or html else None
    if view is None:
        return
    for path, kind in ((png, "png"), (svg, "svg")):
        if path is not None:
            from reports.radial_view import draw

            draw(view, path, kind)
            click.echo(f"Drawn: {path}", err=True)
    if html is not None:
        from reports.network_page import write_page

        write_page(view, html)
        click.echo(f"Written: {html}", err=True)


def _show(found: NetworkInput) -> None:
    from flows.command.printing import bytes_text, show

    network = found.made.network
    assert network is not None
    for note in found.made.notes:
        click.echo(note)
    click.echo()
    show(f"Layers of {found.name}", ("layer", "nodes", "members", "edges inward", "time"), _layers(network))
    show(
        "Patterns of the whole run",
        ("from", "to", "metric", "pattern", "nodes differ", "within nodes", "because of"),
        [
            (
                row["source_layer"],
                row["target_layer"],
                row["metric"],
                row["pattern"] or row["outcome"],
                _factor(row["node_spread"]),
                _factor(row["edge_spread"]),
                _few(row["cause_nodes"]),
            )
            for row in found.patterns().filter("is_whole").iter_rows(named=True)
        ],
    )
    for layer in network.layers[1:]:
        rows = found.nodes(layer.name).head(_LISTED).iter_rows(named=True)
        show(
            f"Slowest nodes of layer {layer.name}",
            (layer.name, "transfers", "read", "written", "mean time [s]", "longest [s]"),
            [
                (
                    row["node"],
                    row["transfer_count"],
                    bytes_text(row["read_bytes"]),
                    bytes_text(row["written_bytes"]),
                    row["mean_s"],
                    row["longest_s"],
                )
                for row in rows
            ],
        )
    if found.made.bottlenecks.height:
        show(
            "Single requests that stand out",
            ("by", "from", "to", "began [s]", "value", "median", "share"),
            [
                (
                    row["metric"],
                    f"{row['source_layer']} {row['source_node']}",
                    row["target_node"],
                    row["began_s"],
                    bytes_text(row["value"]) if row["metric"] == "size" else f"{row['value']:.3g} s",
                    bytes_text(row["median_value"]) if row["metric"] == "size" else f"{row['median_value']:.3g} s",
                    f"{row['share_ratio']:.2%}",
                )
                for row in found.made.bottlenecks.iter_rows(named=True)
            ],
        )


def _layers(network: Network) -> list[tuple[Any, ...]]:
    edges = dict(network.edges.group_by("hop").len().iter_rows())
    kinds: list[str | None] = [kind.replace("_", " ") for kind in network.time_kinds]
    return [
        (layer.name, layer.node_count, layer.member_count, edges.get(hop), kind)
        for hop, (layer, kind) in enumerate(zip(network.layers, [*kinds, None], strict=True))
    ]


def _factor(octaves: float | None) -> str | None:
    """Return a spread in octaves as people understand it: a factor."""
    return None if octaves is None else f"x {2**octaves:.3g}"


def _few(names: list[str] | None) -> str | None:
    if not names:
        return None
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
