"""Test records of extrapolations: deterministic bytes, round trips, and refusal of other content."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.extrapolations import record as extrapolation_json
from iosig.warehouse.sources.extrapolations.record import FieldModel, GivenTrace, Record, RefusedField, Totals, parse
from tests.budget import examples
from tests.warehouse.extrapolation_records import EXTRAPOLATED, REFUSED, sha256, traces

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
totals = st.none() | st.integers(0, 2**127 - 1)
refusals = st.lists(st.builds(RefusedField, st.sampled_from(["no_exact_model", "structures_differ"]), texts, texts))


@st.composite
def records(draw: st.DrawFn) -> Record:
    refused = tuple(draw(refusals))
    given_trace = st.builds(GivenTrace, st.integers(1, 2**31 - 1), texts.map(sha256), texts.filter(bool))
    return Record(
        traces=tuple(sorted(draw(st.lists(given_trace, min_size=1, max_size=5)))),
        has_nested_calls=draw(st.booleans()),
        process_count=draw(st.integers(1, 2**31 - 1)),
        outcome=refused[0].outcome if refused else "extrapolated",
        models=tuple(draw(st.lists(st.builds(FieldModel, texts, texts), max_size=3))),
        refused_fields=refused,
        totals=Totals() if refused else Totals(*draw(st.tuples(*[totals] * 5))),
    )


def document(record: Record = EXTRAPOLATED) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.text())
    return found


def refusal_of(content: object) -> InputRefused:
    given_bytes = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(InputRefused) as refused:
        parse(given_bytes)
    assert refused.value.reason.endswith(".")
    assert refused.value.remedy.endswith(".")
    assert len(refused.value.reason) < 1000
    return refused.value


# ---- round trip


@settings(max_examples=examples(60), deadline=None)
@given(record=records())
def test_record_round_trips(record: Record) -> None:
    assert parse(record.text().encode()) == record
    assert parse(record.text().encode()).text() == record.text()


def test_serialization_does_not_depend_on_order_of_traces() -> None:
    turned = document() | {"traces": document()["traces"][::-1]}
    assert parse(json.dumps(turned, indent=2).encode()).text() == EXTRAPOLATED.text()


def test_trace_set_id_depends_on_contents_and_nesting() -> None:
    renamed = replace(EXTRAPOLATED, traces=tuple(replace(trace, name="x") for trace in EXTRAPOLATED.traces))
    assert renamed.trace_set_id == REFUSED.trace_set_id == EXTRAPOLATED.trace_set_id
    others = [
        replace(EXTRAPOLATED, has_nested_calls=True),
        replace(EXTRAPOLATED, traces=EXTRAPOLATED.traces[:3]),
        replace(EXTRAPOLATED, traces=traces(8, 12, 16, 24, program="hacc")),
    ]
    assert len({EXTRAPOLATED.trace_set_id, *(other.trace_set_id for other in others)}) == 4
    assert len(EXTRAPOLATED.trace_set_id) == 16


def test_row_of_extrapolated_trace_has_models_and_totals() -> None:
    row = EXTRAPOLATED.row()
    assert json.loads(row["trace_set"]) == ["ior/8/raw", "ior/12/raw", "ior/16/raw", "ior/24/raw"]
    assert json.loads(row["trace_ids"])[0] == sha256("ior/8/raw")[:16]
    assert (row["rank_counts"], row["process_count"], row["has_nested_calls"]) == ([8, 12, 16, 24], 1000, False)
    (model,) = json.loads(row["models"])
    assert model == {"field": "class 0, call 4 pwrite, argument 4", "formula": "rank * (960 / n)"}
    assert row["refused_fields"] is None
    assert (row["class_count"], row["call_count"], row["written_bytes"]) == (2, 5000, 1 << 40)


def test_row_of_refused_trace_has_reasons_and_no_totals() -> None:
    row = REFUSED.row()
    assert row["outcome"] == "no_whole_number"
    assert [refused["reason"] for refused in json.loads(row["refused_fields"])] == [
        "960 / 28 is not an integer.",
        "No model explains 3 of 24 values.",
    ]
    assert {row[name] for name in ("class_count", "call_count", "read_bytes", "written_bytes", "file_count")} == {None}


def test_total_too_large_for_column_is_null_but_kept_in_record() -> None:
    large = replace(EXTRAPOLATED, totals=Totals(1, 2**63 - 1, 2**63, 2**127 - 1, 0))
    row = large.row()
    assert (row["call_count"], row["read_bytes"], row["written_bytes"]) == (2**63 - 1, None, None)
    assert parse(large.text().encode()).totals.written_bytes == 2**127 - 1


# ---- refused content


def changed(change: Callable[[dict[str, Any]], object], record: Record = EXTRAPOLATED) -> dict[str, Any]:
    found = document(record)
    change(found)
    return found


def put(*place: str | int, value: object) -> dict[str, Any]:
    """Return the good record with another value at a place."""
    *folders, last = place

    def change(found: Any) -> None:
        for folder in folders:
            found = found[folder]
        found[last] = value

    return changed(change)


MALFORMED: dict[str, tuple[object, str]] = {
    "no_member": (changed(lambda d: d.pop("outcome")), "the record has no outcome"),
    "more_members": (document() | {"more": 1}, "the record has more than"),
    "version": (document() | {"version": True}, "version is not 1"),
    "unknown_outcome": (document() | {"outcome": "perhaps"}, "outcome is not one of extrapolated,"),
    "outcome_of_another_kind": (document() | {"outcome": ["extrapolated"]}, "outcome is not one of"),
    "flag": (document() | {"has_nested_calls": 1}, "has_nested_calls is neither true nor false"),
    "process_count_text": (document() | {"process_count": "8"}, "process_count is not an integer"),
    "process_count_real": (document() | {"process_count": 8.0}, "process_count is not an integer"),
    "process_count_true": (document() | {"process_count": True}, "process_count is not an integer"),
    "process_count_none": (document() | {"process_count": 0}, "process_count is not an integer from 1"),
    "process_count_absurd": (document() | {"process_count": 2**31}, "process_count is not an integer from 1"),
    "no_traces": (document() | {"traces": []}, "traces has 0 members"),
    "many_traces": (document() | {"traces": document()["traces"][:1] * 1001}, "traces has 1,001 members"),
    "traces_no_list": (document() | {"traces": {}}, "traces is not a list"),
    "trace_no_object": (document() | {"traces": ["ior"]}, "traces[0] is not an object"),
    "trace_sha256": (put("traces", 1, "sha256", value="f" * 63), "traces[1].sha256 is not a SHA-256"),
    "trace_sha256_upper": (put("traces", 1, "sha256", value="F" * 64), "traces[1].sha256 is not a SHA-256"),
    "trace_name_empty": (put("traces", 0, "name", value=""), "traces[0].name has 0 characters"),
    "trace_name_long": (put("traces", 0, "name", value="x" * 4097), "traces[0].name has 4,097 characters"),
    "trace_name_half": (put("traces", 0, "name", value="\ud800"), "traces[0].name is not valid Unicode"),
    "trace_negative": (put("traces", 0, "process_count", value=-8), "traces[0].process_count is not an integer"),
    "model_formula": (put("models", 0, "formula", value=None), "models[0].formula is not text"),
    "model_more": (put("models", 0, "code", value="x"), "models[0] has more than field, formula"),
    "total_negative": (put("totals", "call_count", value=-1), "totals.call_count is not an integer"),
    "total_real": (put("totals", "read_bytes", value=1.5), "totals.read_bytes is not an integer"),
    "total_absurd": (put("totals", "read_bytes", value=2**127), "totals.read_bytes is not an integer"),
    "totals_missing": (put("totals", value={}), "totals has no class_count"),
    "totals_none": (put("totals", value=None), "totals is not an object"),
    "refused_without_reasons": (document() | {"outcome": "no_exact_model"}, "its refused fields imply extrapolated"),
    "trace_with_reasons": (document(REFUSED) | {"outcome": "extrapolated"}, "its refused fields imply no_whole_number"),
    "another_reason": (document(REFUSED) | {"outcome": "no_exact_model"}, "its refused fields imply no_whole_number"),
    "refused_as_done": (
        changed(lambda d: d["refused_fields"][1].update(outcome="extrapolated"), REFUSED),
        "a refused field has the outcome extrapolated",
    ),
    "totals_of_nothing": (document(REFUSED) | {"totals": document()["totals"]}, "a refused trace has totals"),
}


@pytest.mark.parametrize("name", list(MALFORMED))
def test_damaged_record_is_refused_with_location(name: str) -> None:
    content, told = MALFORMED[name]
    reason = refusal_of(content).reason
    assert reason.startswith("The record of the extrapolation is damaged: ")
    assert told in reason


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 200_000, b'{"version":' + b"9" * 5000 + b"}", EXTRAPOLATED.text().encode()[:-1]],
    ids=["empty", "open", "no_text", "deep", "long_number", "cut"],
)
def test_invalid_json_is_refused(content: bytes) -> None:
    assert refusal_of(content).reason.startswith("The record of the extrapolation is not valid JSON")


@pytest.mark.parametrize("content", [[], {}, "x", {"format": "other"}, None, {"format": ["iosig-extrapolation"]}])
def test_other_json_is_refused(content: object) -> None:
    assert refusal_of(content).reason == "The JSON is not a record of an extrapolation."


@pytest.mark.parametrize("version", [2, 10**400])
def test_record_of_later_version_is_refused(version: int) -> None:
    refused = refusal_of(document() | {"version": version, "more": 1})
    assert "later version than 1" in refused.reason


def test_oversized_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extrapolation_json, "MAX_BYTES", 100)
    assert refusal_of(document()).reason == "The record of the extrapolation is longer than 100 bytes."


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    content = bytearray(REFUSED.text().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parse(bytes(content))
    except InputRefused:
        return
    assert parse(found.text().encode()) == found
