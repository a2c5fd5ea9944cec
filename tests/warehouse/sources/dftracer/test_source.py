"""Test the recognition of DFTracer traces in all forms, and compare real ones with an independent count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.warehouse.sources.dftracer import source
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, recognize
from tests.dftracer_traces import CALLS, FORMS, Form, Process, put
from tests.naive.sources.dftracer.totals import totals
from tests.warehouse.sources.dftracer_landing import landed, moved

# ---- recognition


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_recognized_by_content(tmp_path: Path, form: Form) -> None:
    lines = Process(7, form).lines_of(CALLS)
    for name in ("x", "x.pfw.gz"):
        assert recognize(read_head(put(tmp_path / name, lines))).name == "dftracer"


@pytest.mark.parametrize(
    "text", ["", "[\n", '{"name": "x"}\n', '[{"name":"a","cat":"b","pid":1,"tid":1,"ph":"B","ts":1}]', "a,b\n1,2\n"]
)
def test_other_content_is_not_recognized(text: str) -> None:
    assert not source.sniff(Head("x", text.encode()))


# ---- real traces


def _same_as_naive(path: Path) -> None:
    naive = totals(sorted(path.iterdir()) if path.is_dir() else [path])
    found = landed(path)
    assert moved(found) == {key: float(volume) for key, volume in naive.moved.items()}
    kinds = {
        (module, name): count
        for module, counters in found["trace_modules"].select("module", "counters").iter_rows()
        for name, count in json.loads(counters).items()
    }
    assert kinds == dict(naive.calls)
    (trace,) = found["traces"].to_dicts()
    assert trace["process_count"] == len(naive.processes)
    assert trace["duration_s"] == (naive.last_us - naive.first_us) / 1e6
    assert "rejects" not in found


@pytest.mark.slow
def test_training_run_matches_independent_count(shared_data: Path) -> None:
    _same_as_naive(shared_data / "dftracer" / "test-trace.pfw.gz")


@pytest.mark.long
def test_run_of_48_processes_matches_independent_count(shared_data: Path) -> None:
    _same_as_naive(shared_data / "dftracer" / "cm1")
