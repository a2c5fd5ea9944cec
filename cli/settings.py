"""`iosig settings`: show the effective settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from iosig.cli.options import GlobalOptions, json_option

#: sections on the interpretation of input
_INPUT_SECTIONS = ("jobs", "polls", "series")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its name, value, source (a file or the default), and the effect of a change."""

    name: str
    value: Any
    default: Any
    origin: str
    changes: str
    description: str


@click.command("settings")
@click.option("--set", "is_set", is_flag=True, help="Only values set in the file.")
@json_option
@click.pass_obj
def settings_command(warehouse: GlobalOptions, is_set: bool, as_json: bool) -> int:
    """Show the effective settings of this warehouse: values, sources, and the effect of a change.

    The file is validated: unknown names and invalid values are reported.
    """
    from iosig.cli.printing import show, show_json
    from iosig.settings.model import settings_file

    store, path = warehouse.store, warehouse.settings_path
    entries = [entry for entry in iterate_settings(path, store.root) if entry.origin or not is_set]
    if as_json:
        from iosig.cli.documents import SettingsDocument

        show_json(SettingsDocument(settings=entries))
        return 0
    origin = settings_file(path, store.root)
    title = f"Settings by {origin}" if origin else "No settings file: all defaults"
    rows = [(entry.name, _text(entry.value), "set" if entry.origin else "default", entry.changes) for entry in entries]
    show(title, ("setting", "value", "by", "a change affects"), rows)
    return 0


def iterate_settings(path: Path | None, warehouse: Path) -> Iterator[Setting]:
    """Yield every effective setting of a warehouse; path: settings file, or None for the default file."""
    from iosig.settings.model import Settings, load, settings_file

    settings, origin = load(path, warehouse), settings_file(path, warehouse)
    recomputing = json.loads(settings.parameters())
    for section, field in Settings.model_fields.items():
        value = getattr(settings, section)
        fields = getattr(type(value), "model_fields", None)
        if fields is None:
            is_set = section in settings.model_fields_set
            notes = _changes(section, section in recomputing), field.description or ""
            yield Setting(section, value, {}, str(origin or "") * is_set, *notes)
            continue
        for name, field_info in fields.items():
            is_set = section in settings.model_fields_set and name in value.model_fields_set
            yield Setting(
                f"{section}.{name}",
                getattr(value, name),
                field_info.default,
                str(origin or "") * is_set,
                _changes(section, name in recomputing.get(section, {})),
                field_info.description or "",
            )


def _changes(section: str, is_anew: bool) -> str:
    if is_anew:
        return "all days, recomputed"
    return "inputs that land later" if section in _INPUT_SECTIONS else "the next commands"


def _text(value: Any) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
