from __future__ import annotations

from pathlib import Path

import pytest

from iosig.warehouse.sources.counters import jobstats_text
from iosig.warehouse.sources.counters.jobstats_text import Begin, Entries, Stamp, parse_events

TEXT = b"""\
1723114647
obdfilter.fs1-OST0001.job_stats=
job_stats:
- job_id:          1
  open: { }
- job_id:          job_stats:
  open: { }
# 2024-08-08T10:57:30Z
mdt.fs1-MDT0000.job_stats=job_stats:
mdt.fs1-MDT0000.num_exports=3
something
  - job_id: 3
mdt.fs1-MDT0001.job_stats=
job_stats:
- job_id:
  open: { }
"""


@pytest.mark.parametrize("block_bytes", [40, 100, 1 << 20])
def test_text_is_parsed_into_headers_times_and_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(jobstats_text, "BLOCK_BYTES", block_bytes)
    path = tmp_path / "stats"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT)
    entries: list[tuple[int, bytes]] = []
    others = []
    for event in parse_events(path, "UTC"):
        if isinstance(event, Entries):
            entries += [
                (event.line if not number else 0, part)
                for number, part in enumerate(event.content.removesuffix(b"\n").split(b"\n- job_id:"))
            ]
        else:
            others.append(event)
    assert [part for _, part in entries] == [
        b"          1\n  open: { }",
        b"          job_stats:\n  open: { }",
        b"\n  open: { }",
    ]
    assert {line for line, _ in entries} <= {0, 4, 6, 15}
    assert others == [
        Stamp(1723114647_000000),
        Begin(2, "ost", "fs1-OST0001"),
        Stamp(1723114650_000000),
        Begin(9, "mdt", "fs1-MDT0000"),
        Begin(13, "mdt", "fs1-MDT0001"),
    ]
