"""Every study is discovered by its record, has the parts that the record declares, and is imported lazily."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosig.studies.command import study_command
from iosig.studies.study import Study, find_studies
from iosig.transforms.networks.patterns import PATTERNS

ROOT = Path(__file__).resolve().parents[2]
STUDIES = list(find_studies())


def test_every_folder_is_a_study() -> None:
    folders = sorted(path.parent.name for path in (ROOT / "studies").glob("*/__init__.py"))
    assert [study.name for study in STUDIES] == folders == sorted(study_command.commands)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_study_has_the_parts_declared_in_its_record(study: Study) -> None:
    names = {field.name for field in fields(study.running.StudyParams)}
    assert {str(option.name) for option in study.options} <= names
    assert all(callable(getattr(study.page, name)) for name in ("values", "figures"))
    assert callable(study.running.study)
    assert study.template.is_file()
    shown = CliRunner().invoke(study_command, [study.name, "--help"]).output
    assert f"Write a page, {study.page_name}" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("iosig.studies.command", ("numpy", "polars", "matplotlib", "scipy")),
        (", ".join(f"iosig.studies.{study.name}.page" for study in STUDIES), ("matplotlib",)),
    ],
    ids=["help", "pages"],
)
def test_heavy_modules_are_imported_on_use(modules: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys; import {modules}; print([name for name in {heavy} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_command_writes_the_page_and_prints_tables_or_json(tmp_path: Path) -> None:
    """All studies share this command; only their options differ."""
    asked = ["networks", "--seeds", "1"]
    told = CliRunner().invoke(study_command, [*asked, "--output", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "What planted patterns are called" in told.stdout
    assert f"Page: {tmp_path / 'networks-study.md'}" in told.stderr.replace("\n", "")
    assert (tmp_path / "networks-study.md").read_text().startswith("<!-- Made by `iosig study networks --seeds 1 ")
    told = CliRunner().invoke(study_command, [*asked, "--json"])
    assert len(json.loads(told.stdout)["results"]["answers"]) == len(PATTERNS)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["elsewhere"],
        ["periods", "--traces", "0"],
        ["periods", "--seed", "-1"],
        ["signatures", "--part", "elsewhere"],
        ["signatures", "--edison", "nowhere.h5lmt"],
        ["extrapolations"],
    ],
)
def test_command_rejects_invalid_arguments(arguments: list[str]) -> None:
    assert CliRunner().invoke(study_command, arguments).exit_code == 2


@pytest.mark.long
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_full_size_study_writes_its_page(study: Study, shared_data: Path, tmp_path: Path) -> None:
    """Run as `iosig study NAME --output FOLDER`, which takes minutes."""
    inputs = {"extrapolations": ["--traces", str(shared_data / "recorder")]}
    result = CliRunner().invoke(study_command, [study.name, "--output", str(tmp_path), *inputs.get(study.name, [])])
    assert result.exit_code == 0, result.output
    page = (tmp_path / study.page_name).read_text(encoding="utf-8")
    drawn = [path.name for path in (tmp_path / "figures").iterdir()]
    assert drawn
    assert all(name in page for name in drawn)
