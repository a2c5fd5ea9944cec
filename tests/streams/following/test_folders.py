"""A followed folder selects the files that are traces, across rotations and renames."""

from __future__ import annotations

import json
from pathlib import Path

from iosig.streams.following.inputs import Folder, Opener

LINE = json.dumps({"write_sync": {"bandwidth": {"b_rank_avr": [1e6], "t_rank_s": [1.0], "t_rank_e": [2.0]}}}) + "\n"


def named(folder: Folder) -> list[str]:
    return [one.identity.subject_id for one in folder.look()]


def test_rotated_file_is_not_a_new_trace(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    folder = Folder(tmp_path, Opener())
    assert named(folder) == ["a.jsonl"]
    (tmp_path / "a.jsonl").rename(tmp_path / "a.jsonl.1")
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "b.jsonl").write_text(LINE)
    assert named(folder) == ["b.jsonl"]
    with (tmp_path / "a.jsonl.1").open("a") as late:
        late.write(LINE)
    assert named(folder) == []
    assert named(folder) == []


def test_new_file_under_the_name_of_a_rotated_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    folder = Folder(tmp_path, Opener())
    assert named(folder) == ["a.jsonl"]
    (tmp_path / "a.jsonl").rename(tmp_path / "old.jsonl")
    assert named(folder) == []
    (tmp_path / "fresh").write_text(LINE + LINE)
    (tmp_path / "fresh").rename(tmp_path / "old.jsonl")
    assert named(folder) == ["old.jsonl"]


def test_file_is_ignored_until_it_is_a_trace(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden.jsonl").write_text(LINE)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    folder = Folder(tmp_path, Opener())
    assert named(folder) == []
    (tmp_path / "notes.txt").write_text(LINE)
    assert named(folder) == ["notes.txt"]
