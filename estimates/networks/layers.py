"""Build the layers of a traced run's network: their nodes, and the mapping from requests to nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints
from iosig.transforms.networks.network import Layer, NetworkParams

#: kinds of layers; `target` is the storage target if known, else the file system
LayerName = Literal["rank", "host", "module", "file", "filesystem", "target"]
LAYER_NAMES: tuple[LayerName, ...] = get_args(LayerName)
#: default layers of a network
DEFAULT_LAYERS: tuple[LayerName, ...] = ("rank", "host", "target")
#: rank of records shared by all ranks
_ALL_RANKS = -1
#: maximum digits of a number in natural sort order; longer digit strings do not fit int64
_NUMBERS = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class RequestSources:
    """Distinct hosts, modules and files in the requests of a network (None if unknown), and their range of ranks.

    files: rows of `trace_files`, including unused files.
    """

    hosts: Sequence[str | None]
    modules: Sequence[str]
    file_numbers: Sequence[int | None]
    files: pl.DataFrame
    rank_low: int
    rank_high: int

    @property
    def is_file_known(self) -> bool:
        """Whether any request has a file number."""
        return any(number is not None for number in self.file_numbers)

    @property
    def is_storage_known(self) -> bool:
        """Whether the storage location of any used file is known."""
        used_files = self.files.filter(pl.col("file_number").is_in(self.file_numbers))
        return not used_files.filter(
            pl.any_horizontal(pl.col("mount", "filesystem_kind", "osts").is_not_null())
        ).is_empty()


@dataclass(frozen=True, slots=True)
class Members:
    """A layer of a network, with the mapping from rows of requests to its nodes.

    keys: columns that identify the node. node_of: mapping from these columns (NULL is a value) to `node`; None for
    ranks. first: rank at which node 0 of a layer of ranks begins.
    """

    layer: Layer
    keys: tuple[str, ...]
    node_of: pl.DataFrame | None = None
    first: int = 0

    def nodes(self, rows: pl.DataFrame) -> Ints:
        """Map rows of requests to nodes (n)."""
        if self.node_of is None:
            numbers: Ints = rows["rank"].cast(pl.Int64).to_numpy()
            return (numbers - self.first) // self.layer.group_size
        joined = rows.select(self.keys).join(
            self.node_of, on=list(self.keys), how="left", nulls_equal=True, maintain_order="left"
        )
        nodes: Ints = joined["node"].to_numpy()
        return nodes


def build_layer(name: LayerName, sources: RequestSources, params: NetworkParams) -> Members:
    """Build a layer; members are grouped into nodes if there are more than `max_node_count`."""
    if name == "rank":
        return build_rank_layer(sources.rank_low, sources.rank_high, params)
    labeled, keys = _label_members(name, sources)
    return build_named_layer(name, labeled, keys, params)


def build_named_layer(name: str, labeled: pl.DataFrame, keys: tuple[str, ...], params: NetworkParams) -> Members:
    """Build a layer of labeled members; labeled: key columns with the `label` of each combination."""
    labels = sort_naturally(labeled["label"].unique().to_list())
    size = _group_size(len(labels), params.max_node_count)
    node = pl.DataFrame(
        {"label": pl.Series(labels, dtype=pl.String), "node": np.arange(len(labels), dtype=np.int64) // size}
    )
    node_labels = [
        labels[at] if size == 1 else f"{labels[at]} to {labels[min(at + size, len(labels)) - 1]}"
        for at in range(0, len(labels), size)
    ]
    layer = Layer(name, pl.Series(node_labels, dtype=pl.String), size, len(labels))
    return Members(layer, keys, labeled.join(node, on="label").select(*keys, "node"))


def build_rank_layer(rank_low: int, rank_high: int, params: NetworkParams) -> Members:
    """Build the layer of ranks, including ranks without requests."""
    first = min(rank_low, 0)
    count = rank_high - first + 1
    size = _group_size(count, params.max_node_count)
    low = np.arange(first, first + count, size)
    high = np.minimum(low + size, first + count) - 1
    labels = [str(a) if a == b else f"{a}-{b}" for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    if first == _ALL_RANKS and size == 1:
        labels[0] = "all ranks"
    return Members(Layer("rank", pl.Series(labels, dtype=pl.String), size, count), ("rank",), first=first)


def _label_members(name: LayerName, sources: RequestSources) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the labels of a layer's members by key columns, and the names of these columns."""
    if name == "host":
        hosts = pl.DataFrame({"host": pl.Series(sources.hosts, dtype=pl.String)})
        return hosts.with_columns(label=pl.col("host").fill_null("unknown host")), ("host",)
    if name == "module":
        return pl.DataFrame({"module": pl.Series(sources.modules, dtype=pl.String)}).with_columns(label="module"), (
            "module",
        )
    files = _files(sources)
    if name in ("file", "filesystem"):
        return files.select("file_number", label=name), ("file_number",)
    return _targets(files, sources), ("ost", "file_number")


def _files(sources: RequestSources) -> pl.DataFrame:
    """Return label columns `file` and `filesystem` of the used files; file_number may be NULL."""
    files = sources.files.unique("file_number", keep="first", maintain_order=True)
    return (
        pl.DataFrame({"file_number": pl.Series(sources.file_numbers, dtype=pl.Int64)})
        .join(files.select("file_number", "path", "mount", "filesystem_kind", "osts"), on="file_number", how="left")
        .select(
            "file_number",
            file=pl.coalesce("path", pl.format("file {}", pl.col("file_number"))).fill_null("unknown file"),
            filesystem=pl.coalesce("mount", "filesystem_kind").fill_null("unknown storage"),
            osts="osts",
        )
    )


def _targets(files: pl.DataFrame, sources: RequestSources) -> pl.DataFrame:
    """Return the label of each pair of target and file: the target if known, else the file system."""
    osts = (
        files.explode("osts", empty_as_null=False)
        .filter(pl.col("osts").is_not_null())
        .select(pl.col("osts").cast(pl.Int64).alias("ost"), "file_number", label=pl.format("OST {}", "osts"))
        .unique(maintain_order=True)
    )
    whole_files = files.select(pl.lit(None, pl.Int64).alias("ost"), "file_number", label="filesystem")
    return pl.concat([osts, whole_files])


def _group_size(member_count: int, max_node_count: int) -> int:
    """Return the number of members per node: a power of two, so that groups begin at round numbers."""
    size = 1
    while -(-member_count // size) > max_node_count:
        size *= 2
    return size


def sort_naturally(labels: Iterable[str]) -> list[str]:
    """Sort labels in natural order: `node2` before `node10`."""
    return sorted(labels, key=lambda label: (_natural(label), label))


def _natural(label: str) -> list[tuple[int, int, str]]:
    """Return the sort key of natural order."""
    parts = _NUMBERS.split(label)
    return [(0, int(part), "") if number % 2 else (1, 0, part) for number, part in enumerate(parts)]


def find_used_nodes(layers: Sequence[Layer], edges: pl.DataFrame) -> Mapping[int, Ints]:
    """Return the sorted nodes with an edge, by layer; the layer of ranks is left out, since idle ranks are kept."""
    nodes: dict[int, Ints] = {}
    for number, layer in enumerate(layers):
        if layer.name == "rank":
            continue
        ends = [
            edges.filter(pl.col("hop") == number)["source"],
            edges.filter(pl.col("hop") == number - 1)["target"],
        ]
        nodes[number] = pl.concat(ends).unique().sort().cast(pl.Int64).to_numpy()
    return nodes
