"""Migrate settings files of commit 18b5d00 to the current names; comments and order are kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from iosig.warehouse import renames
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import atomic_write

#: file name suffix of the backup
_BACKUP_SUFFIX = ".before-upgrade"
_HEADER = re.compile(r"^\s*\[\s*([A-Za-z_]+)(?=[\s.\]])")


def has_former_names(path: Path) -> bool:
    """Return whether a settings file has names or values of commit 18b5d00."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return renames.rename_settings(document) != document


def rename_settings(path: Path) -> Path:
    """Migrate a settings file to the current names, and return the path of the backup.

    Raises UsageError for a file with a layout that is too unusual for line-by-line rewriting.
    """
    text = path.read_text(encoding="utf-8")
    renamed = _rename_text(text)
    if tomllib.loads(renamed) != renames.rename_settings(tomllib.loads(text)):
        raise UsageError(f"{path} cannot be rewritten line by line: rename its settings by docs/upgrading.md.")
    aside = path.with_name(path.name + _BACKUP_SUFFIX)
    for target, content in ((aside, text), (path, renamed)):
        with atomic_write(target) as temporary:
            temporary.write_text(content, encoding="utf-8")
            temporary.chmod(path.stat().st_mode & 0o777)
    return aside


def _rename_text(text: str) -> str:
    lines, section = [], ""
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line):
            section = header[1]
            lines.append(line.replace(section, _SECTIONS.get(section, section), 1))
        elif not any(re.match(rf"\s*{field}\s*=", line) for field in _fields(section, renames.REMOVED_SETTINGS)):
            lines.append(_rename_line(line, section))
    return "".join(lines)


def _rename_line(line: str, section: str) -> str:
    for field in _fields(section, renames.SETTINGS):
        new = renames.SETTINGS[f"{section}.{field}"].partition(".")[2]
        line = re.sub(rf"^(\s*){field}(\s*=)", rf"\g<1>{new}\g<2>", line)
    for field in _fields(section, renames.SETTING_VALUES):
        for old, value in renames.SETTING_VALUES[f"{section}.{field}"].items():
            line = re.sub(rf"([\"']){old}\1", rf"\g<1>{value}\g<1>", line)
    return line


def _fields(section: str, names: Iterable[str]) -> list[str]:
    return [name.removeprefix(f"{section}.") for name in names if name.startswith(f"{section}.")]


_SECTIONS = {old.partition(".")[0]: new.partition(".")[0] for old, new in renames.SETTINGS.items()}
