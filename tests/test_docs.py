"""The pages under docs/ agree with the code, and every declaration has a description."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import duckdb
import pytest
from pydantic import BaseModel

from iosig.cli import reference
from iosig.cli.main import iosig
from iosig.expectations import suites
from iosig.settings.model import QualitySettings, Settings, load
from iosig.warehouse.contracts import TABLES, frames
from iosig.warehouse.contracts.counters import COUNTER_DELTAS
from iosig.warehouse.contracts.job_io import JOB_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.sources.protocol import list_sources
from tests.expectations.cases import CHECKED
from tests.sql import given

ROOT = Path(__file__).resolve().parent.parent
TOP_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "GLOSSARY.md", "SECURITY.md")
PAGES = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md"))
RECORDS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
HAND_WRITTEN = (*TOP_PAGES, *RECORDS, *(name for name in PAGES if name not in reference.PAGES and "-study" not in name))
_CONTEXT = click.Context(iosig, info_name="iosig")


def commands() -> Iterator[click.Command]:
    return (context.command for context in reference.contexts(_CONTEXT))


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield name, field.annotation


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z0-9_]+", text))


# ---- generated pages


@pytest.mark.parametrize("name", list(reference.PAGES))
def test_page_equals_the_declarations_of_the_code(name: str) -> None:
    page = (reference.DOCS / name).read_text(encoding="utf-8")
    assert page == reference.PAGES[name](), f"docs/{name} is stale: run `uv run python -m iosig.cli.reference`"


def test_stale_pages_are_found(tmp_path: Path) -> None:
    for name, page in reference.PAGES.items():
        (tmp_path / name).write_text(page(), encoding="utf-8")
    assert reference.stale(tmp_path) == []
    (tmp_path / "cli.md").write_text("of yesterday", encoding="utf-8")
    (tmp_path / "settings.md").unlink()
    assert reference.stale(tmp_path) == ["cli.md", "settings.md"]


def test_pages_need_no_heavy_library() -> None:
    code = (
        "import sys; from iosig.cli import reference; [page() for page in reference.PAGES.values()]; "
        "print(*sorted({'prefect', 'great_expectations', 'pandas'} & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_rows_of_a_table_have_the_same_number_of_columns() -> None:
    for name, page in reference.PAGES.items():
        for block in page().split("\n\n"):
            if not block.startswith("|"):
                continue
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, f"{name}: {block}"


# ---- descriptions


def test_every_command_has_help() -> None:
    assert [command.name for command in commands() if not (command.help or "").strip()] == []


def test_every_command_has_a_summary() -> None:
    listed = iosig.get_help(click.Context(iosig, info_name="iosig"))
    summaries = dict(re.findall(r"^  ([\w-]+)  +(\S.*)$", listed, re.MULTILINE))
    assert [name for name in iosig.list_commands(_CONTEXT) if not summaries.get(name)] == []


def test_every_option_has_help() -> None:
    silent = [
        f"{command.name} {option.opts[0]}"
        for command in commands()
        for option in command.params
        if isinstance(option, click.Option) and not (option.help or "").strip()
    ]
    assert silent == []


def test_every_setting_has_a_doc() -> None:
    fields = [(name, key, field) for name, model in sections() for key, field in model.model_fields.items()]
    fields += [("", key, field) for key, field in Settings.model_fields.items() if key not in dict(sections())]
    assert [f"{name}.{key}" for name, key, field in fields if not (field.description or "").strip()] == []
    assert [name for name, model in sections() if not (model.__doc__ or "").strip()] == []


def test_every_table_and_column_has_a_doc() -> None:
    assert [table.name for table in TABLES if not re.match(r"one row per .+", table.grain)] == []
    silent = [f"{table.name}.{column.name}" for table in TABLES for column in table.columns if len(column.doc) < 5]
    assert silent == []


def test_every_check_has_a_doc_and_a_remedy() -> None:
    silent = [
        f"{table.name}.{rule.name}"
        for table in CHECKED
        for rule in suites.load_suite_rules(table)
        if not (rule.doc.strip() and rule.remedy.strip())
    ]
    assert silent == []


def test_quality_settings_equal_the_parameters_of_checks() -> None:
    parameters = {parameter.name: parameter.default for table in CHECKED for parameter in suites.parameters(table)}
    fields = {name: field.default for name, field in QualitySettings.model_fields.items()}
    assert parameters == fields


# ---- the example, and hand-written pages


def test_example_settings_are_valid_and_complete() -> None:
    document = tomllib.loads(reference.EXAMPLE.read_text(encoding="utf-8"))
    found = load(reference.EXAMPLE, Path())
    assert document.keys() == Settings.model_fields.keys()
    for name, model in sections():
        assert document[name].keys() == model.model_fields.keys()
        unset = [key for key in model.model_fields if getattr(getattr(found, name), key) in (None, {})]
        assert unset == []


def test_missing_defaults_are_added_to_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reference.EXAMPLE.read_text(encoding="utf-8")
    assert reference.example() == whole
    lacking = re.sub(r"(?m)^(gamma|max_sample_count|cron) .*\n|^\[predictions\].*\n.*\n\n", "", whole)
    (tmp_path / "iosig.toml").write_text(lacking)
    monkeypatch.setattr(reference, "EXAMPLE", tmp_path / "iosig.toml")
    assert len(lacking.splitlines()) == len(whole.splitlines()) - 6
    assert tomllib.loads(reference.example()) == tomllib.loads(whole)
    assert not re.search(r"\n\n\n|\S\n\[\w+\]", reference.example())


def test_every_format_is_described() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert [source.name for source in list_sources() if f"`{source.name}`" not in page] == []


def test_every_value_of_a_closed_list_is_explained() -> None:
    text = (ROOT / "docs" / "values.md").read_text(encoding="utf-8")
    choices = {choice for table in TABLES for column in table.columns for choice in column.choices}
    assert sorted(choice for choice in choices if f"`{choice}`" not in text) == []


def test_glossary_is_short_and_sorted() -> None:
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- \*\*([^*]+)\*\*: (.+)$", text, re.M)
    assert entries
    assert text.count("\n- ") == len(entries) <= 60
    assert [term for term, _ in entries] == sorted((term for term, _ in entries), key=str.casefold)
    assert [term for term, meaning in entries if len(re.findall(r"[.!?](?=\s|$)", meaning)) > 2] == []


@pytest.mark.parametrize("name", [*TOP_PAGES, *RECORDS, *PAGES])
def test_links_lead_to_existing_files(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_commands_and_options_in_pages_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    known = {context.command_path: context.command for context in reference.contexts(_CONTEXT)}
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    for line in lines:
        for subcommand, rest in re.findall(r"\biosig (?:--\w+ \S+ )*([a-z-]+)([^#|&]*)", line):
            path = f"iosig {subcommand}"
            while isinstance(known.get(path), click.Group) and (rest.strip() or path == "iosig"):
                path = f"{path} {rest.split()[0]}"
                rest = rest.split(maxsplit=1)[1] if len(rest.split()) > 1 else ""
            assert path in known, line
            options = {name for option in known[path].params for name in (*option.opts, *option.secondary_opts)}
            unknown = [option for option in re.findall(r"(?<!\S)--[a-z-]+", rest) if option not in options]
            assert unknown == [], line


def test_readme_has_at_most_100_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_every_direct_dependency_has_a_stated_use() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = (project["dependencies"], *project["optional-dependencies"].values())
    packages = {re.split(r"[^\w-]", requirement)[0] for group in groups for requirement in group}
    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    assert sorted(package for package in packages if f"`{package}`" not in text) == []
    assert f"{len(project['dependencies'])} are direct dependencies" in text


def test_citation_names_the_version() -> None:
    yaml = pytest.importorskip("yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


def test_index_links_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [name for name in PAGES if f"({name.removeprefix('docs/')}" not in index and name != "docs/README.md"] == []


@pytest.mark.parametrize("name", RECORDS)
def test_decision_record_has_the_standard_form(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    number = int(Path(name).name[:4])
    assert re.match(
        rf"# {number}\. \S.*\n\n- Status: (?:accepted|superseded by \d{{4}})\n- Date: 20\d\d-\d\d-\d\d\n", text
    )
    assert re.findall(r"^## (.*)$", text, re.M) == ["Context", "Decision", "Consequences"]
    assert len(text.split()) <= 500, "a record is at most one page"


def test_decision_records_are_numbered_and_listed() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d{4}) \| \[(.*)\]\((\1-[a-z0-9-]+\.md)\) \| (\S+) \|$", index, re.M)
    expected = []
    for number, name in enumerate(RECORDS, start=1):
        text = (ROOT / name).read_text(encoding="utf-8")
        title, date = re.findall(r"\A# \d+\. (.*)$|^- Date: (.*)$", text, re.M)
        expected.append((f"{number:04d}", title[0], Path(name).name, date[1]))
    assert listed == expected


def test_every_published_table_is_listed() -> None:
    listed = words((ROOT / "docs" / "tables.md").read_text(encoding="utf-8"))
    assert {table.name for table in TABLES if table.is_published} - listed == set()


def test_documented_counter_queries_rank_jobs_by_operations() -> None:
    text = (ROOT / "docs" / "job-statistics.md").read_text(encoding="utf-8")
    own, talkers = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    rows = """
        job_key component interval_started_at  interval_ended_at open_count getattr_count read_count
        7       mdt       10:00:00 10:00:10 5          1             9
        7       mdt       10:10:00 10:10:10 5          .             .
        8       mdt       10:00:00 10:00:10 8          1             .
        9       mdt       10:00:00 10:00:10 2          1             .
        6       mdt       10:00:00 10:00:10 1          1             .
        8       mdt       11:00:00 11:00:10 3          .             .
        8       ost       10:00:00 10:00:10 99         99            .
        .       mdt       10:00:00 10:00:10 99         99            .
        """
    with duckdb.connect() as connection:
        for table in (JOB_IO, JOBS):
            connection.register(table.name, frames.empty(table))
        connection.register(COUNTER_DELTAS.name, given.rows("stage.counter_deltas", rows))
        assert connection.sql(own).fetchall() == []
        found = [(hour.hour, *told) for hour, _, *told in connection.sql(talkers).fetchall()]
    assert found == [
        *((10, "getattr", key, 1) for key in ("6", "7", "8")),
        *((10, "open", key, count) for key, count in (("7", 10), ("8", 8), ("9", 2))),
        (11, "open", "8", 3),
    ]


def test_settings_in_pages_are_valid(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "many-machines.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:```toml\n|<<'END'\n)(.*?)(?:```|END\n)", text, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        (tmp_path / "iosig.toml").write_text(block, encoding="utf-8")
        load(None, tmp_path)
