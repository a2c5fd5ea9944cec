"""Test that the block size of readers has no effect on rows and rejects."""

from __future__ import annotations

import pytest

from tests.warehouse.sources.counters import (
    test_influx_line as influx,
    test_jobstats as jobstats,
    test_ldms_csv as ldms,
    test_mmpmon as mmpmon,
    test_pmrep as pmrep,
    test_prometheus as prometheus,
)
from tests.warehouse.sources.polls import test_mmperfmon as mmperfmon
from tests.warehouse.sources.samples import T, read, samples

SECONDS = range(0, 60, 10)
#: contents that are longer than the samples, for formats with state between blocks
CONTENTS = {
    "influx-line": "\n# a comment\n" + "".join(influx.job(f"j{n}", at * n, at) for at in SECONDS for n in (1, 2)),
    "jobstats": jobstats.rounds(0, 0, 4096, None, 4096, 8192),
    "ldms-csv": ldms.OST + "".join(ldms.ost(at, 2, at) for at in SECONDS) + "\n" + ldms.OST + ldms.ost(99, 99, 70),
    "mmperfmon": mmperfmon.good_text() + mmperfmon.good_text(2),
    "pmrep": pmrep.GPFS_COUNTERS + pmrep.GPFS_RATES + pmrep.DISK_RATES,
    "mmpmon": "".join(mmpmon.line(at // 20, at) for at in SECONDS),
    "prometheus-prom": "".join(f"{T + at}\n" + prometheus.snapshot(at, 7, 9) for at in SECONDS[::2]),
}
_LINES = ("rows.log_lines.BLOCK_LINES",)
_JOBS = ("jobs.slurm_json._BLOCK_RECORDS",)
#: the constants that limit a block, in bytes or rows
BOUNDS = {
    "sacct": _LINES,
    "pbs": _LINES,
    "swf": _LINES,
    "sge": _LINES,
    "slurm-jobcomp": _LINES,
    "lsf": _LINES,
    "squeue": _LINES,
    "sacct-json": _JOBS,
    "squeue-json": _JOBS,
    "polls-csv": ("polls.csv.BLOCK_BYTES", "polls.csv._PIECE_ROWS", "polls.polls.MAX_BUFFERED_ROWS"),
    "polls-parquet": ("polls.parquet.PIECE_ROWS", "polls.parquet.MAX_BUFFERED_ROWS"),
    "lmt-database": ("polls.lmt_queries.BATCH_ROWS", "polls.lmt_queries._FETCHED_ROWS"),
    "lustre-stats": ("polls.lustre_stats.BLOCK_BYTES",),
    "mmperfmon": ("polls.mmperfmon.BLOCK_BYTES",),
    "jobstats": (
        "counters.jobstats_text.BLOCK_BYTES",
        "counters.jobstats._READ_BYTES",
        "counters.jobstats._BATCH_ROWS",
    ),
    "influx-line": ("counters.influx_line.BLOCK_BYTES", "counters.influx_line._NEWS_ROWS"),
    "ldms-csv": ("counters.ldms_csv.BLOCK_BYTES",),
    "ldms-lustre2": ("counters.ldms_lustre2.BLOCK_BYTES",),
    "mmpmon": ("counters.mmpmon.BLOCK_BYTES",),
    "pmrep": ("counters.pmrep.BLOCK_BYTES",),
    "prometheus-prom": ("counters.prometheus.BLOCK_BYTES",),
    "tacc-stats": ("counters.tacc_stats.BLOCK_BYTES",),
    "glljobstat": ("counters.glljobstat._PIECE_ROWS",),
    "dftracer": ("dftracer.lines.BLOCK_BYTES", "dftracer.lines._CHUNK_BYTES"),
    "tmio-jsonl": ("tmio.parts._READ_BYTES", "rows.traced.BATCH_ROWS"),
    "tmio-msgpack": ("tmio.parts._READ_BYTES", "tmio.parts._PIECE_BYTES", "rows.traced.BATCH_ROWS"),
    "request-events-csv": ("rows.text_blocks.BLOCK_BYTES", "events.source._PIECE_ROWS"),
    "request-events-parquet": ("events.source._PIECE_ROWS",),
    "recorder-txt": ("recorder.text.PIECE_BYTES", "rows.traced.BATCH_ROWS"),
    "predictions": ("predictions.lines._BATCH_LINES",),
}


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize("key", BOUNDS)
def test_block_size_has_no_effect(monkeypatch: pytest.MonkeyPatch, key: str, size: int) -> None:
    content = CONTENTS[key].encode() if key in CONTENTS else samples()[key].content
    whole = read(samples()[key], content)
    for bound in BOUNDS[key]:
        monkeypatch.setattr(f"iosig.warehouse.sources.{bound}", size)
    ends = (b"\n",) if b"\0" in content or not content.isascii() else (b"\n", b"\r\n")
    for end in ends:
        found = read(samples()[key], content.replace(b"\n", end))
        assert found.tables.keys() == whole.tables.keys()
        assert found.rejects.equals(whole.rejects)
        for name, rows in whole.tables.items():
            assert found.tables[name].equals(rows), name
