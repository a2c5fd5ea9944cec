"""Check whether a settings file may name programs: only the user who runs them, or root, may have write access."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_GROUP_OR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def read_settings_file(path: Path) -> tuple[str, str | None]:
    """Read a file; also return the reason why other users could have written it, or None.

    Owner and mode are those of the open file, so the file cannot be replaced between check and read.
    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        content = file.read()
    return content.decode("utf-8"), _check_file(path, status) or _check_folders(path)


def _check_file(path: Path, status: os.stat_result) -> str | None:
    if _has_foreign_owner(status):
        return f"{path} belongs to {_user(status.st_uid)}: copy it to a file that you own, and pass that as --settings"
    if status.st_mode & _GROUP_OR_OTHERS:
        return f"other users can write {path}: run `chmod go-w {path}`"
    return None


def _check_folders(path: Path) -> str | None:
    """Check the folder of the file, and that of a symbolic link to it: write access there allows replacing the file."""
    for folder in {path.absolute().parent, path.resolve().parent}:
        status = folder.stat()
        if _has_foreign_owner(status):
            return f"{folder} belongs to {_user(status.st_uid)}: move {path.name} to a folder that you own"
        # in a folder with the sticky bit, only the owner of a file can replace it
        if status.st_mode & _GROUP_OR_OTHERS and not status.st_mode & stat.S_ISVTX:
            return f"other users can replace {path}: run `chmod go-w {folder}`, or move the file"
    return None


def _has_foreign_owner(status: os.stat_result) -> bool:
    return status.st_uid not in (0, os.geteuid())


def _user(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"user {user_id}"
