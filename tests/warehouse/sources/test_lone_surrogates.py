"""A lone surrogate, which JSON can spell and no column can hold: a reject, or a refused file, never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs import sacct_json, squeue_json
from iosig.warehouse.sources.predictions.lines import line_of
from iosig.warehouse.sources.protocol import Reading, named
from iosig.warehouse.store.landing import land
from iosig.warehouse.store.store import Store
from tests.dftracer_traces import Process, write_call
from tests.flows import growing_traces
from tests.prediction_rows import prediction
from tests.warehouse.extrapolation_records import EXTRAPOLATED

_T = 1_772_366_400
_SURROGATE = "\ud800"
#: the bytes of one in a text that is no valid UTF-8
_IN_BYTES = b"\xed\xa0\x80"

Document = Any


def _prometheus() -> Document:
    labels = {"component": "ost", "target": "fs1-OST0001", "instance": "oss1", "fs": "lake"}
    return {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": {"__name__": "lustre_job_write_bytes_total", "jobid": job} | labels, "values": values}
                for job, values in (("1", [[_T, "5"], [_T + 10, "9"]]), ("2", [[_T, "1"], [_T + 10, "3"]]))
            ],
        },
    }


def _sacct() -> Document:
    job = {
        "account": "climate", "comment": {"job": "fs=scratch1"}, "allocation_nodes": 2, "cluster": "c1",
        "time": {"elapsed": 600, "end": _T + 600, "start": _T, "submission": _T - 60}, "nodes": "cn[01-02]",
        "exit_code": {"status": "SUCCESS", "return_code": 0}, "partition": "main", "user": "ann", "name": "icon",
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "steps": [
            {
                "time": {"elapsed": 580, "end": _T + 600, "start": _T}, "nodes": {"count": 2, "range": "cn[01-02]"},
                "state": "COMPLETED", "step": {"id": "0", "name": "icon.x"}, "exit_code": {"return_code": 0},
            }
        ],
    }  # fmt: skip
    return {"meta": {"Slurm": {"release": "22.05"}}, "jobs": [job | {"job_id": 1}, job | {"job_id": 2}], "errors": []}


def _squeue() -> Document:
    job = {
        "account": "climate", "cluster": "c1", "comment": "fs=scratch", "name": "icon", "partition": "io",
        "user_name": "ann", "state_reason": "Priority", "job_state": "PENDING", "node_count": 4, "time_limit": 30,
        "submit_time": _T - 60, "eligible_time": _T - 60, "start_time": 0, "array_task_string": "",
    }  # fmt: skip
    return {"meta": {"Slurm": {}}, "jobs": [job | {"job_id": 1}, job | {"job_id": 2}], "errors": []}


def _lines(texts: list[str]) -> Document:
    return [json.loads(text.rstrip(",")) if text[:1] == "{" else text for text in texts]


def _as_lines(document: Document) -> str:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in document)


#: of each format: its name, a document, how it is written
FORMATS: dict[str, tuple[Document, Callable[[Document], str]]] = {
    "prometheus": (_prometheus(), json.dumps),
    sacct_json.SOURCE.name: (_sacct(), json.dumps),
    squeue_json.SOURCE.name: (_squeue(), json.dumps),
    "tmio": (_lines([line.decode() for line in growing_traces.flushes(2)]), _as_lines),
    "dftracer": (_lines(Process(1, rank=0).lines_of([write_call(0, 4096), write_call(50, 8192)])), _as_lines),
    "predictions": (_lines([line_of(prediction(1)), line_of(prediction(2))]), _as_lines),
    "extrapolations": (json.loads(EXTRAPOLATED.text()), json.dumps),
}


def _spoilt(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield copies of a document, each with a lone surrogate in one name or text, and where that is."""

    def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        # a line that is no JSON, as a bracket, has no escapes
        if isinstance(value, str) and value not in ("[", "]"):
            yield path
        elif isinstance(value, dict):
            for name, each in value.items():
                yield (*path, ("name", name))
                yield from places(each, (*path, name))
        elif isinstance(value, list):
            for number in range(len(value)):
                yield from places(value[number], (*path, number))

    for path in places(document, ()):
        spoilt = copy.deepcopy(document)
        holder = spoilt
        for part in path[:-1]:
            holder = holder[part]
        if isinstance(path[-1], tuple):
            holder[path[-1][1] + _SURROGATE] = holder.pop(path[-1][1])
        else:
            holder[path[-1]] += _SURROGATE
        yield ".".join(map(str, path)), spoilt


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_lone_surrogate_anywhere_is_no_bug(name: str, tmp_path: Path) -> None:
    document, text_of = FORMATS[name]
    store = Store(tmp_path / "warehouse")
    spoilt = [("nowhere", document), *_spoilt(document)]
    assert len(spoilt) > 10
    for number, (place, each) in enumerate(spoilt):
        path = tmp_path / f"squeue-{_T}-{number}"
        path.write_text(text_of(each), encoding="utf-8")
        try:
            landed = land(store, path, lambda _: Reading(time_zone="UTC"), format_name=name).landing
        except InputRefused:
            assert place != "nowhere"
            continue
        assert landed.row_count() or landed.refused_count, place
        # what was kept is text that others can read
        for part in landed.parts:
            pl.read_parquet(tmp_path / "warehouse" / part.path).write_json()


def test_the_other_series_of_an_answer_land_and_the_reject_names_the_series(tmp_path: Path) -> None:
    document = _prometheus()
    document["data"]["result"][0]["metric"]["fs"] = "lake" + _SURROGATE
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(document))
    batches = [*named("prometheus").read(path, Reading())]
    (rejected,) = [batch.rows for batch in batches if batch.table == REJECTS]
    assert rejected.select("line", "reason").rows() == [(1, "The label fs is no valid Unicode text.")]
    assert rejected["remedy"][0]
    (kept,) = [batch.rows for batch in batches if batch.table.name == "counter_samples"]
    assert kept["job_key"].unique().to_list() == ["2"]


_SACCT = b"JobID|User|JobName|Partition|NNodes|Start|End|State\n"
_JOB = b"|ior|b|8|2026-03-01T12:00:00Z|2026-03-01T13:00:00Z|COMPLETED\n"
_POLLS = b"polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sacct", _SACCT + b"1|ann~" + _JOB + b"2|bob" + _JOB),
        ("polls-csv", _POLLS + b"2026-03-01T12:00:00Z,c~,5,1,2\n2026-03-01T12:00:00Z,d,5,1,2\n"),
    ],
    ids=["sacct", "polls"],
)
def test_invalid_text_in_one_row_costs_that_row(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content.replace(b"~", _IN_BYTES))
    landed = land(Store(tmp_path / "warehouse"), path, lambda _: Reading(time_zone="UTC"), format_name=name).landing
    assert (landed.row_count(), landed.refused_count) == (1, 1)
