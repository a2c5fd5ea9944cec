"""Classes of runs by their applications' signatures, where only shared traffic tells of their own time.

Of what flowed while a run was there most is others'. What its application does when alone, in as long as the run took,
has the right class twice as often (`iosig study population`).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from flows.arrays import floats, ints
from transforms import classes
from transforms.arrays import offsets_of

#: a run of which a smaller share of its signature is found in the traffic moved nothing, where so many of its
#: application's runs, or more, are found: else their bursts are too small among others' to be missed (both are ours)
_LEAST_FOUND, _USUALLY_FOUND = 0.1, 0.5
_SET = ["application_id", "filesystem", "direction"]


def by_signatures(runs: pl.DataFrame, bursts: pl.DataFrame) -> pl.DataFrame:
    """Return runs with the labels of those whose `told_by` is `signature`.

    runs: with duration_s, node_count, label, told_by, and of those with a signature application_id, alone_s,
    signature_bytes and explained_bytes (NULL where nobody looked for any). bursts: of signatures, in order of
    application_id, filesystem and direction, with started_s, ended_s and volume_bytes.
    """
    signed = runs.with_row_index("run").filter(told_by="signature").with_row_index("place")
    found = signed.select("place", *_SET).join(bursts, on=_SET, how="inner", maintain_order="left")
    sections = classes.burst_sections(
        floats(found["started_s"]),
        floats(found["ended_s"]),
        floats(found["volume_bytes"]),
        offsets_of(np.bincount(ints(found["place"]), minlength=signed.height)),
        floats(signed["alone_s"]),
        floats(signed["duration_s"]),
    )
    labels = pl.Series(classes.labels(sections.volume_bytes, floats(signed["node_count"])).tolist(), dtype=pl.String)
    is_found = pl.col("explained_bytes") >= _LEAST_FOUND * pl.col("signature_bytes")
    is_idle = (~is_found & (is_found.mean().over(_SET) >= _USUALLY_FOUND)).fill_null(value=False)
    own = signed.select("run", own_label=pl.when(is_idle).then(pl.lit("NO_USAGE")).otherwise(labels))
    told = runs.with_row_index("run").join(own, on="run", how="left", maintain_order="left")
    return told.with_columns(label=pl.coalesce("own_label", "label")).drop("run", "own_label")
