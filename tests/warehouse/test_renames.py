"""Test the map of renamed names: every target is a current name, and no former name is left."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest

from iosig.cli.documents import schemas
from iosig.cli.main import iosig
from iosig.expectations import suites
from iosig.settings.model import Settings
from iosig.settings.values import list_fields
from iosig.warehouse import renames
from iosig.warehouse.contracts import TABLES
from iosig.warehouse.errors import meant

BY_NAME = {table.name: table for table in TABLES}
COLUMNS = {column.name for table in TABLES for column in table.columns}
CHOICES = {choice for table in TABLES for column in table.columns for choice in column.choices}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names, such as `plot map`."""
    waiting: list[tuple[str, click.Command]] = [("", iosig)]
    while waiting:
        name, command = waiting.pop()
        yield name, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            found = ((each, command.get_command(context, each)) for each in command.list_commands(context))
            waiting += [(f"{name} {each}".strip(), own) for each, own in found if own is not None]


def test_renamed_tables_and_columns_exist() -> None:
    assert set(renames.TABLES.values()) <= BY_NAME.keys()
    assert not renames.TABLES.keys() & BY_NAME.keys()
    assert set(renames.COLUMNS.values()) <= COLUMNS
    assert not renames.COLUMNS.keys() & COLUMNS
    for name, own in renames.TABLE_COLUMNS.items():
        names = set(BY_NAME[name].column_names)
        assert set(own.values()) <= names
        assert not own.keys() & names


def test_renamed_values_exist() -> None:
    for column, values in renames.VALUES.items():
        choices = {each for table in TABLES for own in table.columns if own.name == column for each in own.choices}
        assert set(values.values()) <= choices
        assert not values.keys() & choices
    for name, columns in renames.TABLE_VALUES.items():
        for column, values in columns.items():
            choices = set(BY_NAME[name].column(column).choices)
            assert set(values.values()) <= choices
            assert not values.keys() & choices


def test_redefined_values_exist() -> None:
    for column, values in renames.REDEFINED_VALUES.items():
        choices = {each for table in TABLES for own in table.columns if own.name == column for each in own.choices}
        assert values.keys() | set(values.values()) <= choices
        assert renames.get_renamed_values("signatures")[column].items() >= values.items()


def test_renamed_settings_exist() -> None:
    sections = list_fields(Settings)
    fields = {f"{section}.{field}" for section, model in sections.items() for field in list_fields(model)}
    assert set(renames.SETTINGS.values()) <= fields
    assert not (renames.SETTINGS.keys() | set(renames.REMOVED_SETTINGS)) & fields
    assert renames.SETTING_VALUES.keys() <= fields


def test_renamed_options_and_commands_exist() -> None:
    found = dict(commands())
    for name, options in renames.OPTIONS.items():
        own = [command for path, command in found.items() if path.partition(" ")[0] == name]
        known = {option for command in own for parameter in command.params for option in parameter.opts}
        assert set(options.values()) <= known, name
        assert not options.keys() & known, name
    assert set(renames.COMMANDS.values()) <= found.keys()


def test_renamed_json_fields_exist() -> None:
    text = json.dumps(schemas())
    assert [new for new in renames.JSON_FIELDS.values() if f'"{new}"' not in text] == []
    assert [old for old in renames.JSON_FIELDS if f'"{old}": {{' in text] == []


def test_renamed_checks_exist() -> None:
    checks = {rule.name for table in TABLES for rule in suites.load_suite_rules(table)}
    assert set(renames.CHECKS.values()) <= checks
    assert not renames.CHECKS.keys() & checks


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("trust", ["expected_correlation", "method"], " It was renamed to expected_correlation."),
        ("LATE_S", ["start_delay_s"], " It was renamed to start_delay_s."),
        ("poll_days", BY_NAME, " It was renamed to polls_daily."),
        ("warped", ["elastic", "iosi"], " It was renamed to elastic."),
        ("trust", ["method"], ""),
        ("methd", ["method"], " Did you mean method?"),
    ],
)
def test_former_name_is_reported_with_its_replacement(name: str, known: list[str], expected: str) -> None:
    assert meant(name, known) == expected


def test_settings_are_renamed_by_section_and_field() -> None:
    former = {
        "watch": {"silent_ratio": 4.0},
        "periods": {"methods": ["controlled", "dft"], "server_window_levels": 3, "z_score": 2.0},
        "schedule": {"cron": "0 1 * * *", "wait_s": 5},
        "filesystems": {"scratch1": "snx"},
        "counters": {"columns": {"late_s": "x"}},
    }
    assert renames.rename_settings(former) == {
        "alerts": {"stale_factor": 4.0},
        "periods": {"methods": ["null_tested", "dft"], "z_score": 2.0},
        "schedule": {"cron": "0 1 * * *", "lock_timeout_s": 5},
        "filesystems": {"scratch1": "snx"},
        "counters": {"columns": {"late_s": "x"}},
    }
