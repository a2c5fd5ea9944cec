from __future__ import annotations

import polars as pl

from iosig.warehouse.sources.counters.exposition import Exposition

TEXT = r"""# TYPE lustre_read_bytes counter
lustre_read_bytes_total{target="a",job="x \"y\""} 5 1723114647250
lustre_read_bytes_total{ target="b", job="z" } 1.5e+3 1723114647.5
lustre_read_bytes_total{job="z",target="c",} 7
other_total 3
"""


def test_exposition_lines_are_read_with_labels_in_any_order() -> None:
    lines = pl.Series("text", TEXT.splitlines()).to_frame().with_row_index("line", 1).cast({"line": pl.Int64})
    roles = {"target": ("target",), "job_key": ("jobid", "job")}
    told = Exposition({"lustre_read_bytes_total"}, roles).read(lines.with_columns(snapshot=pl.lit(0, pl.Int64)))
    assert told.rows().select("line", "target", "job_key", "value", "at_us").rows() == [
        (2, "a", "x 'y'", 5, 1723114647250000),
        (3, "b", "z", 1500, 1723114647500000),
        (4, "c", "z", 7, None),
    ]
    assert told.refused.select("line", "reason").rows() == [(5, "No line declares the type of the metric.")]
