"""Settings may name programs only if just the user and root can write the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from iosig.flows import executors
from iosig.flows.notifications import require_own_sendmail, telling
from iosig.settings.model import FILE_NAME, Settings, load
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store.store import Store

PROGRAM = '[alerts]\nmail_to = ["ops@example.org"]\nsendmail = "/tmp/program"\n'
NOBODY = 65_534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file that names a program, in a private folder."""
    path = tmp_path / "own" / "site.toml"
    path.parent.mkdir(mode=0o755)
    path.write_text(PROGRAM)
    path.chmod(0o644)
    return path


def loaded(file: Path) -> Settings:
    return load(file, file.parent)


def require_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")


def given_to_another_user(path: Path) -> None:
    require_root()
    os.chown(path, NOBODY, NOBODY)


def folder_given_to_another_user(path: Path) -> None:
    given_to_another_user(path.parent)


def linked_from_an_open_folder(path: Path) -> None:
    target = path.parent.parent / "target.toml"
    path.rename(target)
    path.symlink_to(target)
    path.parent.chmod(0o777)


def test_private_file_may_name_a_program(file: Path) -> None:
    require_own_sendmail(loaded(file))


def test_file_of_root_may_name_a_program(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_root()
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    require_own_sendmail(loaded(file))


def test_file_in_a_sticky_folder_may_name_a_program(file: Path) -> None:
    file.parent.chmod(0o1777)
    require_own_sendmail(loaded(file))


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (lambda path: path.chmod(0o664), r"other users can write .*site\.toml: run `chmod go-w .*site\.toml`"),
        (lambda path: path.chmod(0o646), r"other users can write .*site\.toml: run `chmod go-w"),
        (
            lambda path: path.parent.chmod(0o777),
            r"other users can replace .*: run `chmod go-w .*own`, or move",
        ),
        (lambda path: path.parent.chmod(0o775), r"other users can replace"),
        (given_to_another_user, r"belongs to nobody: copy it to a file that you own, and pass that as --settings"),
        (folder_given_to_another_user, r"own belongs to nobody: move site\.toml to a folder that you own"),
        (linked_from_an_open_folder, r"other users can replace"),
    ],
)
def test_file_writable_by_others_must_not_name_a_program(
    file: Path, change: Callable[[Path], None], remedy: str
) -> None:
    change(file)
    settings = loaded(file)
    with pytest.raises(UsageError, match=rf"^alerts\.sendmail makes iosig run a program as you, but .*{remedy}"):
        require_own_sendmail(settings)


def test_check_precedes_the_run(file: Path, tmp_path: Path) -> None:
    file.chmod(0o666)
    with pytest.raises(UsageError, match="sendmail"), telling(Store(tmp_path / "w"), loaded(file), pytest.fail):
        pytest.fail("the run began")


@pytest.mark.parametrize("text", ['[alerts]\nmail_to = ["ops@example.org"]\n', '[alerts]\nsendmail = "/x"\n', ""])
def test_file_without_programs_may_be_shared(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o666)
    require_own_sendmail(loaded(file))


@pytest.mark.parametrize(
    "text",
    ['[engine]\nexecutor = "slurm"\n', '[engine]\nexecutor = "dask"\nscheduler = "tcp://head:8786"\n'],
)
def test_job_scripts_and_schedulers_count_as_programs(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o666)
    with (
        pytest.raises(UsageError, match=r"^engine\.executor = .*`chmod go-w"),
        executors.open_engine(loaded(file), file),
    ):
        pytest.fail("it was opened")


def test_settings_in_an_object_store_must_not_name_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "copies"
    root.mkdir()
    (root / ".url").write_text("s3://bucket/prefix")
    (root / FILE_NAME).write_text(PROGRAM)
    monkeypatch.setattr(Store, "local", lambda store, name: store.root / name)
    with pytest.raises(UsageError, match="is in an object store"):
        require_own_sendmail(load(None, root))


def test_command_refuses_an_unsafe_file_in_one_sentence(
    file: Path, tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    file.chmod(0o666)
    code, _, err = cli("--warehouse", tmp_path / "w", "--settings", file, "run")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("iosig: alerts.sendmail makes iosig run a program")
