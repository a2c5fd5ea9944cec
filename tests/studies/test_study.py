"""Every study is found by its record, and has what the record says; none is in the way of `--help`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from studies.command import study_command
from studies.study import Study, found

ROOT = Path(__file__).resolve().parents[2]
STUDIES = list(found())


def test_every_folder_is_a_study() -> None:
    folders = sorted(path.parent.name for path in (ROOT / "studies").glob("*/__init__.py"))
    assert [study.name for study in STUDIES] == folders == sorted(study_command.commands)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_has_what_its_record_says(study: Study) -> None:
    names = {field.name for field in fields(study.running.StudyParams)}
    assert {str(option.name) for option in study.options} <= names
    assert all(callable(getattr(study.page, name)) for name in ("tables", "document", "blocks"))
    assert callable(study.running.study)
    shown = CliRunner().invoke(study_command, [study.name, "--help"]).output
    assert f"Write a page, {study.page_name}" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("studies.command", ("numpy", "polars", "matplotlib", "scipy")),
        (", ".join(f"studies.{study.name}.page" for study in STUDIES), ("matplotlib",)),
    ],
    ids=["help", "pages"],
)
def test_what_takes_long_is_imported_when_it_is_used(modules: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys; import {modules}; print([name for name in {heavy} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
