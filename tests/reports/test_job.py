"""The page of a run: all known facts, no active content, and names from logs as texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from iosig.reports.job import job_page

EVIL = "<img src=x onerror=alert(1)></style><script>alert(2)</script>"
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
DASH = "\N{EN DASH}"


def trace(**told: Any) -> dict[str, Any]:
    finding = {
        "rule": "small_requests", "direction": "read", "severity": "critical", "impact_ratio": 0.25,
        "sentence": "5 of 5 reads are small.", "remedy": "Gather them.", "anchor": "Drishti P05",
        "files": [{"path": EVIL, "value": 5.0, "unit": "requests"}],
    }  # fmt: skip
    layer = dict.fromkeys(
        ("read_bytes", "written_bytes", "read_count", "write_count", "open_count", "seek_count", "stat_count",
         "sync_count", "read_time_s", "write_time_s", "metadata_time_s"),
    ) | {"module": "POSIX", "outcome": "sound", "is_partial": True}  # fmt: skip
    return {
        "tracer": "darshan", "source_file": "a.darshan", "application": EVIL, "process_count": 4, "duration_s": 60.0,
        "facts": {
            "io_time_ratio": 0.1, "read_count": 4.0, "read_sequential_count": 1.0, "read_consecutive_count": 0.0,
            "write_count": None, "write_sequential_count": None, "write_consecutive_count": None,
        },
        "findings": [finding], "unknown": [{"rule": "stragglers", "direction": None}], "layers": [layer],
        "sizes": [{"module": "POSIX", "size": "0_100", "read_count": 4, "write_count": None}], "heatmaps": [],
    } | told  # fmt: skip


def document(*traces: dict[str, Any]) -> dict[str, Any]:
    job = {
        "application": EVIL, "user": EVIL, "node_count": 2, "task_count": None, "state": "COMPLETED",
        "started_at": NOON, "duration_s": 60.0, "cluster": EVIL, "partition": None,
    }  # fmt: skip
    sample = {
        "filesystem": EVIL, "direction": "write", "is_exact": False, "start_s": -1.0, "step_s": 2.0,
        "bytes_per_s": [None, 1e9, 0.0],
    }  # fmt: skip
    slowed = {
        "filesystem": EVIL, "direction": "write", "burst": 3, "outcome": "slowed", "burst_expected_at": NOON,
        "start_delay_s": 1.0, "delay_s": 120.0, "delay_low_s": 60.0, "delay_high_s": 180.0,
        "top_interferer_application_id": EVIL,
        "top_interferer_bytes": 5e9, "unattributed_bytes": 1e9,
    }  # fmt: skip
    curve = {"filesystem": EVIL, "direction": "write", "step_s": 1.0, "bytes_per_s": [5e8, 0.0]}
    return {
        "job_id": EVIL, "release_id": "r1", "job": job, "other_runs_started_at": [], "io": [],
        "samples": [sample], "signatures": [curve], "operations": [], "neighbor_count": 0, "neighbors": [],
        "slowdowns": [slowed, slowed | {"burst": 4, "outcome": "not_slowed"}],
        "traces": list(traces),
    }  # fmt: skip


def test_page_is_inert_for_hostile_names() -> None:
    page = job_page(document(trace()), ["<svg role='img'></svg>"])
    assert not re.search(r"<(img|script)", page)
    assert page.count("</style>") == 1
    assert "default-src 'none'" in page
    assert "&lt;img src=x" in page
    assert not re.search(r"""(src|href)=["']?http""", page)


def test_page_lists_findings_and_unknown_facts() -> None:
    page = job_page(document(trace()), [None])
    assert '<li class="critical">' in page
    assert "the busiest rank spends 25.0% of the run in it" in page
    assert "1 rules could not be evaluated" in page
    assert "POSIX (incomplete)" in page
    assert "25.0% of POSIX reads are sequential" in page
    assert "No heat map" in page
    assert "the signature over it" in page


def test_page_lists_files_of_findings_and_interferers() -> None:
    page = job_page(document(trace()), [None])
    assert "Mostly in &lt;img src=x" in page
    assert "(5 requests)" in page
    assert "1 of 2 bursts detected in the traffic was slowed." in page
    assert "<td>1 s</td><td>120 s</td><td>60 to 180 s</td>" in page
    assert "<td>5 GB</td>" in page


def test_page_has_operations_where_servers_counted_them() -> None:
    operations = {
        "filesystem": EVIL, "direction": "write", "volume_operations": 3e6, "peak_operations_per_s": 1.5e4,
        "start_s": -1.0, "step_s": 2.0, "operations_per_s": [None, 1.5e4, 0.0], "label": "HILL",
        "class_outcome": "classified", "class_basis": "inferred", "period_s": None, "period_basis": None,
        "signature": None,
    }  # fmt: skip
    signature = {
        "filesystem": EVIL, "direction": "write", "volume_operations": 2e6, "step_s": 1.0,
        "operations_per_s": [9e3, 0.0],
    }  # fmt: skip
    page = job_page(document() | {"operations": [operations]}, [])
    row = f"<td>write</td><td>3 Mop</td><td>15 kop/s</td><td>{DASH}</td><td>HILL (inferred)</td><td>{DASH}</td>"
    assert row in page
    assert page.count("the signature over it") == 1
    assert "[kop/s]" in page
    page = job_page(document() | {"operations": [operations | {"signature": signature}]}, [])
    assert "<td>2 Mop</td>" in page
    assert page.count("the signature over it") == 2
    assert not re.search(r"<(img|script)", page)
    idle = operations | {"operations_per_s": [0.0, None], "volume_operations": 0.0, "label": None}
    page = job_page(document() | {"operations": [idle]}, [])
    assert "[kop/s]" not in page
    assert "<td>0 op</td>" in page
    assert "Operations" not in job_page(document(), [])


def test_small_share_is_shown_as_less_than_a_tenth_of_a_percent() -> None:
    facts = trace()["facts"] | {"read_count": 1e6, "read_sequential_count": 9e5, "read_consecutive_count": 9.0}
    page = job_page(document(trace(facts=facts)), [None])
    assert "90.0% of POSIX reads are sequential, less than 0.1% start where the previous one ended." in page


def test_page_without_trace_or_job_has_messages() -> None:
    assert "The release has no trace of this run" in job_page(document(), [])
    bare = document(trace(findings=[], unknown=[])) | {"job": None, "release_id": None, "samples": []}
    page = job_page(bare, [None])
    assert "This job is not in any job log" in page
    assert "The trace shows no I/O problem" in page
    assert "Neighbors" not in page
