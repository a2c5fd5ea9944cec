"""Test explanations of inputs: the format, the fields, the first rows, and the refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosig.answers.single import explanation
from iosig.answers.single.explanation import explain_input, make_document
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions

POLLS = "note,polled_at,controller,read_bytes_per_s,write_bytes_per_s\n" + "".join(
    f"x,2026-03-02T10:00:{second:02}Z,a,{second},NaN\n" for second in range(20)
)


def write(folder: Path, text: str) -> Path:
    path = folder / "input.txt"
    path.write_text(text)
    return path


def test_format_fields_and_first_rows_are_returned(tmp_path: Path) -> None:
    found = explain_input(write(tmp_path, POLLS + "a line\n"), Settings(), ReadOptions())
    assert found.source
    assert found.source.name == "polls-csv"
    assert list(found.taken) == ["polled_at", "controller", "read_bytes_per_s", "write_bytes_per_s"]
    assert found.ignored == ("note",)
    assert found.row_counts == {"polls": 20, "rejects": 1}
    assert found.rows["polls"]["read_bytes_per_s"].to_list() == [0, 1, 2, 3, 4]
    # columns without any value are left out
    assert "write_bytes_per_s" not in found.rows["polls"].columns
    assert found.rows["rejects"]["line"].to_list() == [22]
    assert found.is_complete
    assert found.refusal is None


def test_only_start_of_long_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, "_READ_ROWS", 10)
    found = explain_input(write(tmp_path, POLLS), Settings(), ReadOptions())
    assert not found.is_complete


@pytest.mark.parametrize(
    ("text", "format_name", "reason"),
    [
        ("hello\n", None, "fits no known format"),
        ("1|2026-03-02T10:00:00|2026-03-02T11:00:00|COMPLETED\n", None, "no header"),
        ("JobID|Start\n1|2026-03-02T10:00:00\n", None, "no time zone"),
        ('{"status": "error", "errorType": "timeout", "error": "timed out"}', None, "timed out"),
        ("JobID User State\n----- ---- -----\n1 a COMPLETED\n", "sacct", "padded"),
    ],
)
def test_refusal_is_explained(tmp_path: Path, text: str, format_name: str | None, reason: str) -> None:
    found = explain_input(write(tmp_path, text), Settings(), ReadOptions(), format_name)
    assert found.refusal
    assert reason in found.refusal.reason
    document = make_document("input.txt", found)
    assert document.reason == found.refusal.reason
    assert document.json_text()


def test_folder_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    found = explain_input(tmp_path, Settings(), ReadOptions())
    assert found.refusal
    assert "not a trace" in found.refusal.reason
