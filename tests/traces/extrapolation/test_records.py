"""Extrapolation records are created from models, landed once, and superseded by later records."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from iosig.traces.extrapolation import records
from iosig.traces.extrapolation.records import (
    GivenTrace,
    Record,
    Totals,
    land,
    land_if_there,
    make_given_trace,
    make_totals,
    record,
)
from iosig.transforms.extrapolation.result import ExtrapolatedTrace, Model, Refusal
from iosig.transforms.traces import totals
from iosig.transforms.traces.totals import CallTotal, FileTotal, ModuleTotal
from iosig.transforms.traces.trace import CompressedTrace, RankClass
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.extrapolations import record as extrapolation_json
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.warehouse.extrapolation_records import EXTRAPOLATED, REFUSED, traces

DONE = ExtrapolatedTrace(
    rank_counts=(8, 12, 16, 24),
    process_count=1000,
    outcome="extrapolated",
    models=(Model("class 0, call 4 pwrite, argument 4", "rank * (960 / n)"),),
    refusals=(),
    trace=CompressedTrace(1000, (RankClass((), ()), RankClass((), ()))),
)
NOT_DONE = ExtrapolatedTrace(
    rank_counts=(8, 12, 16, 24),
    process_count=28,
    outcome="no_whole_number",
    models=DONE.models,
    refusals=(
        Refusal("no_whole_number", "class 0, call 4 pwrite, argument 4", "960 / 28 is not an integer."),
        Refusal("no_exact_model", "class 0, call 5 pread, argument 4", "No model explains 3 of 24 values."),
    ),
    trace=None,
)
COUNTED = Totals(call_count=5000, read_bytes=0, written_bytes=1 << 40, file_count=1)


def rows(store: Store) -> list[dict[str, object]]:
    """Every landed row that counts, in the order of landing."""
    parts = [part for lot in landing.ledger(store) for part in lot.parts]
    return [row for part in parts for row in pl.read_parquet(store.root / part.path).to_dicts()]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "warehouse")


# ---- creation


def test_record_is_created_from_an_extrapolation() -> None:
    found = record(DONE, traces(24, 16, 8, 12), has_nested_calls=False, totals=COUNTED)
    assert found == EXTRAPOLATED
    assert found.text() == record(DONE, traces(8, 12, 16, 24), has_nested_calls=False, totals=COUNTED).text()


def test_record_is_created_from_a_refusal_with_all_its_fields() -> None:
    assert record(NOT_DONE, traces(8, 12, 16, 24), has_nested_calls=False) == REFUSED


def test_uncounted_totals_are_unknown_except_for_the_class_count() -> None:
    found = record(DONE, traces(8, 12, 16, 24), has_nested_calls=True)
    assert found.totals == Totals(class_count=2)


def module(name: str, is_nested: bool | None, read_bytes: int | None, written_bytes: int | None) -> ModuleTotal:
    return ModuleTotal(name, is_nested, 1, 1, read_bytes, written_bytes)


def file(path: str | None, file_count: int | None) -> FileTotal:
    return FileTotal(path, file_count, 8, 4, 0, 0, 0, 0, 0)


def test_nested_bytes_are_counted_once() -> None:
    calls = (CallTotal("MPIIO", "MPI_File_write_at", 40), CallTotal("POSIX", "pwrite", 60))
    modules = (module("MPIIO", False, 5, 400), module("POSIX", False, 0, 7), module("POSIX", True, 5, 400))
    found = make_totals(totals.Totals(8, calls, modules, (file("a", 1), file("b.{0..7}", 8))))
    assert found == Totals(None, 100, 5, 407, 9)
    assert make_totals(totals.Totals(8, (), (), ())) == Totals(None, 0, 0, 0, 0)


def test_total_with_an_unknown_part_is_unknown() -> None:
    some = (module("MPIIO", False, None, 400), module("POSIX", True, None, None))
    found = make_totals(totals.Totals(8, (), some, (file("a", 1), file(None, None))))
    assert found == Totals(None, 0, None, 400, None)
    mixed = (module("MPIIO", False, 5, 400), module("POSIX", None, 5, 400))
    assert make_totals(totals.Totals(8, (), mixed, ())) == Totals(None, 0, None, None, 0)


def test_inconsistent_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="must have"):
        record(DONE, traces(8, 12, 16), has_nested_calls=False)
    with pytest.raises(ValueError, match="cannot have totals"):
        record(NOT_DONE, traces(8, 12, 16, 24), has_nested_calls=False, totals=COUNTED)
    with pytest.raises(ValueError, match="refused fields imply extrapolated"):
        record(replace(NOT_DONE, refusals=()), traces(8, 12, 16, 24), has_nested_calls=False)


def test_names_with_undecodable_bytes_are_kept() -> None:
    odd = GivenTrace(8, "0" * 64, b"caf\xe9".decode("utf-8", "surrogateescape"))
    reason = replace(NOT_DONE.refusals[0], field="\udce9", reason="\udcff.")
    refused = replace(NOT_DONE, rank_counts=(8,), refusals=(reason,), models=(Model("\ud800", "n"),))
    found = record(refused, [odd], has_nested_calls=False)
    assert extrapolation_json.parse(found.text().encode()) == found
    assert json.loads(found.row()["trace_set"]) == ["caf\\udce9"]


@pytest.mark.parametrize("character", ["é", '"', "\x01"])
def test_long_lists_are_truncated_with_a_note(character: str) -> None:
    long = tuple(Model(f"{number} " + character * 200, "n") for number in range(20_000))
    many = tuple(Refusal("no_exact_model", model.field, "Why.") for model in long)
    found = record(
        replace(NOT_DONE, models=long, refusals=many, outcome="no_exact_model"),
        traces(8, 12, 16, 24),
        has_nested_calls=False,
    )
    assert extrapolation_json.parse(found.text().encode()) == found
    for listed, last in (
        (found.models, found.models[-1].formula),
        (found.refused_fields, found.refused_fields[-1].reason),
    ):
        assert last == "Not listed: the record would be too long."
        assert listed[-1].field == f"and {20_000 - len(listed) + 1:,} more"
        assert len(listed) > 1000


def test_oversized_single_field_is_omitted_with_a_note() -> None:
    refusal = replace(NOT_DONE.refusals[0], reason="x" * (3 << 20))
    found = record(replace(NOT_DONE, refusals=(refusal,)), traces(8, 12, 16, 24), has_nested_calls=False)
    assert extrapolation_json.parse(found.text().encode()) == found
    assert [refused.field for refused in found.refused_fields] == ["and 1 more"]


def test_two_traces_of_one_rank_count_are_both_listed() -> None:
    twice = replace(NOT_DONE, rank_counts=(8, 12))
    found = record(twice, [*traces(8, 12), *traces(8, program="hacc")], has_nested_calls=False)
    assert found.row()["rank_counts"] == [8, 8, 12]


def test_trace_has_the_name_and_id_of_its_landing(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "ior" / "8" / "raw.tar"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"some trace")
    with pytest.raises(InputRefused):
        landing.land(store, path, lambda _: Reading(), format_name="recorder")
    (landed,) = landing.ledger(store)
    found = make_given_trace(path, 8)
    assert (found.process_count, found.sha256) == (8, landed.content_sha256)
    assert found.name.endswith("ior/8/raw.tar")


def test_folder_that_is_not_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused):
        make_given_trace(tmp_path, 8)


def test_real_trace_is_identified_by_its_archive(shared_data: Path) -> None:
    archive = next((shared_data / "recorder").glob("ior_posix_chunk/8/raw.tar*"), None)
    if archive is None:
        pytest.skip("the Recorder traces are not on this machine")
    found = make_given_trace(archive, 8)
    assert found.name == f"ior_posix_chunk/8/{archive.name}"
    assert found.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()


# ---- landing


def test_record_lands_once(store: Store) -> None:
    first, again = land(store, EXTRAPOLATED, "ior-1000"), land(store, EXTRAPOLATED, "ior-1000")
    assert (first.is_new, again.is_new) == (True, False)
    assert first.landing == again.landing
    assert rows(store) == [EXTRAPOLATED.row() | {"source_file": "ior-1000"}]
    assert first.landing.format == "extrapolations"


def test_record_landed_from_a_file_is_not_landed_again(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "record"
    path.write_text(EXTRAPOLATED.text())
    by_hand = landing.land(store, path, lambda _: Reading())
    assert not land(store, EXTRAPOLATED, "ior-1000").is_new
    land(store, REFUSED, "ior-28")
    path.write_text(REFUSED.text())
    assert not landing.land(store, path, lambda _: Reading()).is_new
    assert by_hand.is_new
    assert len(rows(store)) == 2


def test_records_of_other_rank_counts_or_nesting_land_separately(store: Store) -> None:
    for other in (
        EXTRAPOLATED,
        replace(EXTRAPOLATED, process_count=2000),
        replace(EXTRAPOLATED, has_nested_calls=True),
    ):
        assert land(store, other, "ior").is_new
    assert len({(row["trace_set_id"], row["process_count"]) for row in rows(store)}) == 3


def test_latest_record_lands_even_if_it_repeats_an_earlier_one(store: Store) -> None:
    refused = replace(REFUSED, process_count=1000)
    said: list[Record] = [EXTRAPOLATED, refused, EXTRAPOLATED, EXTRAPOLATED, refused]
    assert [land(store, word, "ior").is_new for word in said] == [True, True, True, False, True]
    assert [row["outcome"] for row in rows(store)] == ["extrapolated", "no_whole_number"]
    assert [lot.generation for lot in landing.ledger(store)] == [1, 1]


def test_record_lands_only_in_an_existing_warehouse(store: Store) -> None:
    assert land_if_there(store, EXTRAPOLATED, "ior") is None
    assert not store.root.exists()
    land(store, REFUSED, "ior")
    landed = land_if_there(store, EXTRAPOLATED, "ior")
    assert landed is not None
    assert landed.is_new


def test_relative_warehouse_path_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    near = Store(Path("warehouse"))
    assert [land(near, EXTRAPOLATED, "ior").is_new for _ in range(2)] == [True, False]


def test_oversized_record_is_not_landed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extrapolation_json, "MAX_BYTES", 100)
    with pytest.raises(InputRefused, match="longer than 100 bytes"):
        land(store, EXTRAPOLATED, "ior")
    assert not store.landed.exists()


def test_trace_file_metadata_contain_the_record(tmp_path: Path, store: Store) -> None:
    known = records.metadata(EXTRAPOLATED)
    assert known == {"extrapolation": EXTRAPOLATED.text()}
