"""Test items of a list in a streamed JSON document: equal to the result of json.load, or refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.rows import json_items
from tests.budget import examples

SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


def read(folder: Path, content: bytes) -> list[Any]:
    (folder / "file").write_bytes(content)
    return list(json_items.items(folder / "file", "jobs", "Again."))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(VALUE, max_size=6),
    st.dictionaries(st.text(max_size=5).filter(lambda name: name != "jobs"), VALUE, max_size=3),
    st.booleans(),
    st.integers(1, 40),
    st.sampled_from([None, 1]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_items_equal_result_of_json_load(
    tmp_path_factory: pytest.TempPathFactory,
    listed: list[Any],
    others: dict[str, Any],
    is_first: bool,
    chunk: int,
    indent: int | None,
    encoding: str,
) -> None:
    document = {"jobs": listed} | others if is_first else others | {"jobs": listed}
    content = json.dumps(document, indent=indent, ensure_ascii=False).encode(encoding, "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        # detecting the encoding takes four bytes
        patch.setattr(json_items, "_CHUNK_CHARS", chunk + 3)
        assert read(tmp_path_factory.mktemp("json"), content) == json.loads(content)["jobs"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[]", "{ is missing"),
        (b"", "it is truncated"),
        (b"{}", "The JSON has no list of jobs."),
        (b'{"jobs": 7}', "The JSON has no list of jobs."),
        (b'{"jobs": [1, 2', "after 2 items: it is truncated"),
        (b'{"jobs": [1, 2]', "it is truncated"),
        (b'{"jobs": [1 2]}', ", or ] is missing"),
        (b'{"jobs": [1]} x', "extra content follows its end"),
        (b'{"jobs": [tru]}', "Expecting value"),
        (b"{7: [1]}", "a member has no name"),
        (b'{"jobs": [\xff]}', "decode"),
        (b'{"jobs": [1], "meta": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"jobs": [1,' + b"[" * 200_000, "item 2 is nested too deeply"),
    ],
)
def test_document_without_list_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(InputRefused) as refusal:
        read(tmp_path, content)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("document", "quoted"),
    [
        ({"jobs": [], "errors": [{"description": "Connection refused", "error_number": 1800}]}, "Connection refused."),
        ({"errors": [{"error": "no database", "source": "slurmdbd"}], "jobs": [1]}, "no database; slurmdbd."),
        ({"jobs": [], "errors": ["down"]}, "down."),
        ({"jobs": [], "errors": [{"errno": 7}]}, '{"errno": 7}'),
        ({"status": "error", "errorType": "timeout", "error": "query timed out"}, "query timed out."),
        ({"status": "success", "isPartial": True, "jobs": []}, "isPartial is true."),
        ({"jobs": [], "warnings": ["a store did not respond"]}, "a store did not respond."),
    ],
)
def test_document_that_states_its_failure_is_refused(tmp_path: Path, document: Any, quoted: str) -> None:
    with pytest.raises(InputRefused, match="states that it is incomplete: ") as refusal:
        read(tmp_path, json.dumps(document).encode())
    assert quoted in refusal.value.reason


def test_complete_document_without_items_is_read(tmp_path: Path) -> None:
    warning = {"description": "slurmdb_jobs_get() reports nothing found", "source": "db_query_list"}
    document = {"jobs": [], "errors": [], "warnings": [warning], "isPartial": False, "error": None, "status": "success"}
    assert read(tmp_path, json.dumps(document).encode()) == []


def test_appended_documents_are_named_in_refusal(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="another document follows its end"):
        read(tmp_path, b'{"jobs": [1]}\n{"jobs": [2]}\n')


def test_damage_is_reported_after_items_before_it(tmp_path: Path) -> None:
    content = gzip.compress(json.dumps({"jobs": [{"n": n} for n in range(400_000)]}).encode())
    (tmp_path / "file").write_bytes(content[: len(content) // 2])
    found: list[Any] = []
    with pytest.raises(InputRefused, match=r"after [0-9,]+ items"):
        found.extend(json_items.items(tmp_path / "file", "jobs", "Again."))


def test_oversized_item_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_items, "_CHUNK_CHARS", 100)
    assert read(tmp_path, json.dumps({"jobs": ["x" * 800]}).encode()) == ["x" * 800]
    with (
        apply_limits(Limits(max_json_item_bytes=1000)),
        pytest.raises(InputRefused, match=r"limits\.max_json_item_bytes"),
    ):
        read(tmp_path, json.dumps({"jobs": ["x" * 5000]}).encode())
