"""The layers of a traced run's network: which nodes there are, and at which of them each landed request is seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints
from iosig.transforms.networks.network import Layer, NetworkParams

#: what a layer can be made of: `target` is the storage target where it is known, else the file system
LayerName = Literal["rank", "host", "module", "file", "filesystem", "target"]
LAYER_NAMES: tuple[LayerName, ...] = get_args(LayerName)
#: the layers of a network unless others are asked for
USUAL_LAYERS: tuple[LayerName, ...] = ("rank", "host", "target")
#: the rank of what all ranks did together
_ALL_RANKS = -1
#: so many digits at most are read as one number: a longer number is no host's
_NUMBERS = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the requests of a network are of: distinct hosts, modules and files (any may be None), and the ranks.

    files: rows of `trace_files`, of any files. rank_low, rank_high: the lowest and the highest rank.
    """

    hosts: Sequence[str | None]
    modules: Sequence[str]
    file_numbers: Sequence[int | None]
    files: pl.DataFrame
    rank_low: int
    rank_high: int

    @property
    def is_file_known(self) -> bool:
        """Whether any request tells its file."""
        return any(number is not None for number in self.file_numbers)

    @property
    def is_storage_known(self) -> bool:
        """Whether it is known of any file where it lies."""
        told = self.files.filter(pl.col("file_number").is_in(self.file_numbers))
        return not told.filter(pl.any_horizontal(pl.col("mount", "filesystem_kind", "osts").is_not_null())).is_empty()


@dataclass(frozen=True, slots=True)
class Members:
    """A layer of a network, and how a row of requests tells its node there.

    keys: the columns of a row that tell it. node_of: these columns (NULL is a value) with `node`; None for ranks, of
    which node 0 begins at `first`.
    """

    layer: Layer
    keys: tuple[str, ...]
    node_of: pl.DataFrame | None = None
    first: int = 0

    def nodes(self, rows: pl.DataFrame) -> Ints:
        """Return the node of each row (n)."""
        if self.node_of is None:
            numbers: Ints = rows["rank"].cast(pl.Int64).to_numpy()
            return (numbers - self.first) // self.layer.group_size
        found = rows.select(self.keys).join(
            self.node_of, on=list(self.keys), how="left", nulls_equal=True, maintain_order="left"
        )
        nodes: Ints = found["node"].to_numpy()
        return nodes


def members(name: LayerName, seen: Seen, params: NetworkParams) -> Members:
    """Return a layer of a network; a node is several members where there are more than `max_node_count`."""
    if name == "rank":
        return ranks(seen.rank_low, seen.rank_high, params)
    labelled, keys = _labelled(name, seen)
    return named(name, labelled, keys, params)


def named(name: str, labelled: pl.DataFrame, keys: tuple[str, ...], params: NetworkParams) -> Members:
    """Return a layer whose members have names; labelled: the keys, and the `label` of each value of them."""
    labels = in_natural_order(labelled["label"].unique().to_list())
    size = _group_size(len(labels), params.max_node_count)
    node = pl.DataFrame(
        {"label": pl.Series(labels, dtype=pl.String), "node": np.arange(len(labels), dtype=np.int64) // size}
    )
    shown = [
        labels[at] if size == 1 else f"{labels[at]} to {labels[min(at + size, len(labels)) - 1]}"
        for at in range(0, len(labels), size)
    ]
    layer = Layer(name, pl.Series(shown, dtype=pl.String), size, len(labels))
    return Members(layer, keys, labelled.join(node, on="label").select(*keys, "node"))


def ranks(rank_low: int, rank_high: int, params: NetworkParams) -> Members:
    """Return the layer of ranks, which are there whether or not they make requests."""
    first = min(rank_low, 0)
    count = rank_high - first + 1
    size = _group_size(count, params.max_node_count)
    low = np.arange(first, first + count, size)
    high = np.minimum(low + size, first + count) - 1
    labels = [str(a) if a == b else f"{a}-{b}" for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    if first == _ALL_RANKS and size == 1:
        labels[0] = "all ranks"
    return Members(Layer("rank", pl.Series(labels, dtype=pl.String), size, count), ("rank",), first=first)


def _labelled(name: LayerName, seen: Seen) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the label of each value of the columns that tell a layer's member, and these columns."""
    if name == "host":
        hosts = pl.DataFrame({"host": pl.Series(seen.hosts, dtype=pl.String)})
        return hosts.with_columns(label=pl.col("host").fill_null("unknown host")), ("host",)
    if name == "module":
        return pl.DataFrame({"module": pl.Series(seen.modules, dtype=pl.String)}).with_columns(label="module"), (
            "module",
        )
    files = _files(seen)
    if name in ("file", "filesystem"):
        return files.select("file_number", label=name), ("file_number",)
    return _targets(files, seen), ("ost", "file_number")


def _files(seen: Seen) -> pl.DataFrame:
    """Return file_number, file and filesystem of the files of requests, NULL among them if requests have none."""
    told = seen.files.unique("file_number", keep="first", maintain_order=True)
    return (
        pl.DataFrame({"file_number": pl.Series(seen.file_numbers, dtype=pl.Int64)})
        .join(told.select("file_number", "path", "mount", "filesystem_kind", "osts"), on="file_number", how="left")
        .select(
            "file_number",
            file=pl.coalesce("path", pl.format("file {}", pl.col("file_number"))).fill_null("unknown file"),
            filesystem=pl.coalesce("mount", "filesystem_kind").fill_null("unknown storage"),
            osts="osts",
        )
    )


def _targets(files: pl.DataFrame, seen: Seen) -> pl.DataFrame:
    """Return the label of each pair of target and file: the target, else the file's system."""
    osts = (
        files.explode("osts", empty_as_null=False)
        .filter(pl.col("osts").is_not_null())
        .select(pl.col("osts").cast(pl.Int64).alias("ost"), "file_number", label=pl.format("OST {}", "osts"))
        .unique(maintain_order=True)
    )
    whole = files.select(pl.lit(None, pl.Int64).alias("ost"), "file_number", label="filesystem")
    return pl.concat([osts, whole])


def _group_size(member_count: int, max_node_count: int) -> int:
    """Return how many members are one node: a power of two, so that groups begin at round numbers."""
    size = 1
    while -(-member_count // size) > max_node_count:
        size *= 2
    return size


def in_natural_order(labels: Iterable[str]) -> list[str]:
    """Return labels sorted, numbers within them by their value."""
    return sorted(labels, key=lambda label: (_natural(label), label))


def _natural(label: str) -> list[tuple[int, int, str]]:
    """Return by what labels are sorted: numbers within them by their value."""
    parts = _NUMBERS.split(label)
    return [(0, int(part), "") if number % 2 else (1, 0, part) for number, part in enumerate(parts)]


def used(layers: Sequence[Layer], edges: pl.DataFrame) -> Mapping[int, Ints]:
    """Return, for each layer but that of ranks, the nodes that have an edge, rising: idle ranks are told, too."""
    found: dict[int, Ints] = {}
    for number, layer in enumerate(layers):
        if layer.name == "rank":
            continue
        ends = [
            edges.filter(pl.col("hop") == number)["source"],
            edges.filter(pl.col("hop") == number - 1)["target"],
        ]
        found[number] = pl.concat(ends).unique().sort().cast(pl.Int64).to_numpy()
    return found
