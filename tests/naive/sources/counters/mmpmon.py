"""Naive implementation of `iosig.warehouse.sources.counters.mmpmon`: word by word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ORDER = [
    f"_{name}_"
    for name in ("n", "nn", "rc", "t", "tu", "cl", "fs", "d", "br", "bw", "oc", "cc", "rdc", "wc", "dir", "iu")
]
COUNTS = {
    "_br_": "total_read_bytes",
    "_bw_": "total_written_bytes",
    "_oc_": "total_open_count",
    "_cc_": "total_close_count",
    "_rdc_": "total_read_count",
    "_wc_": "total_write_count",
    "_dir_": "total_readdir_count",
    "_iu_": "total_other_count",
}


def rows(text: str) -> Iterator[dict[str, Any]]:
    """Yield target, filesystem, at_us and the columns of each line."""
    for line in text.split("\n"):
        first, *words = line.rstrip().split(" ")
        told = dict(zip(words[::2], words[1::2], strict=False))
        if first != "_fs_io_s_" or [*told] not in (ORDER, [name for name in ORDER if name != "_d_"]):
            continue
        if told["_rc_"] == "0" and all(told[name].isdigit() for name in ("_t_", "_tu_", *COUNTS)):
            at_us = int(told["_t_"]) * 1_000_000 + int(told["_tu_"])
            counts = {column: int(told[name]) for name, column in COUNTS.items()}
            yield {"target": told["_nn_"], "filesystem": told["_fs_"], "at_us": at_us, **counts}
