"""Test the limits of an input: they apply from the settings down to the reader, and errors name them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files import opening
from iosig.warehouse.sources.files.limits import Limits, apply_limits, current_limits
from iosig.warehouse.sources.files.opening import open_decompressed, text_lines
from iosig.warehouse.store.store import Store

LOG = "JobID|User|State|Start|End\n7|ann|COMPLETED|2026-03-03T10:00:00Z|2026-03-03T10:20:00Z\n"


def test_limits_apply_in_context_and_errors_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_FREE_BYTES", 1000)
    packed, lines = tmp_path / "packed", tmp_path / "lines"
    packed.write_bytes(gzip.compress(b"x\n" * 5_000))
    lines.write_bytes(b"ab\nabcd\n")
    with apply_limits(Limits(max_line_bytes=3, max_expansion_factor=1.0)):
        assert [text for _, text, _ in text_lines(lines)] == ["ab", None]
        with pytest.raises(InputRefused, match=r"limits\.max_expansion_factor"), open_decompressed(packed) as file:
            file.read()
    assert current_limits() == Limits()


def test_limits_in_settings_apply_to_landing(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(LOG + "8|" + "b" * 2000 + "|COMPLETED|2026-03-03T10:00:00Z|2026-03-03T10:20:00Z\n")
    for max_line_bytes, refused_count in ((1024, 1), (4096, 0)):
        settings = Settings.model_validate({"limits": {"max_line_bytes": max_line_bytes}})
        (arrival,) = land_paths(
            Store(tmp_path / str(max_line_bytes)), settings, [str(tmp_path / "jobs")], ReadOptions()
        )
        assert arrival.landed
        assert arrival.landed.landing.refused_count == refused_count
    assert current_limits() == Limits()


def test_only_files_of_mostly_empty_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"\r\n" * 9)
    with (
        apply_limits(Limits(max_refused_count=5)),
        pytest.raises(InputRefused, match=r"lines are empty \(limits\.max_refused_count"),
    ):
        list(text_lines(path))
    path.write_bytes(b"a\n\n" * 9)
    with apply_limits(Limits(max_refused_count=5)):
        assert len(list(text_lines(path))) == 18
