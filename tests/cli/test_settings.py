"""`iosig settings` shows values, their origin and effect, and reports invalid files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.cli.settings import iterate_settings
from iosig.settings.model import Settings, load
from iosig.warehouse.errors import UsageError
from tests.nights import Cli


def written(folder: Path, text: str) -> Path:
    (folder / "iosig.toml").write_text(text)
    return folder / "iosig.toml"


def test_each_setting_is_listed_with_its_origin(tmp_path: Path) -> None:
    path = written(tmp_path, '[schedule]\ncron = "1 2 * * *"\n[filesystems]\nscratch3 = "snx11025"\n')
    found = {one.name: one for one in iterate_settings(None, tmp_path)}
    assert found["schedule.cron"].value == "1 2 * * *"
    assert found["schedule.cron"].default == Settings().schedule.cron
    assert {name for name, one in found.items() if one.origin} == {"schedule.cron", "filesystems"}
    assert found["filesystems"].origin == str(path)
    fields = sum(len(getattr(type(getattr(Settings(), name)), "model_fields", "1")) for name in Settings.model_fields)
    assert len(found) == fields


def test_effect_of_a_change_is_listed(tmp_path: Path) -> None:
    found = {one.name: one.changes for one in iterate_settings(None, tmp_path)}
    assert found["signatures.methods"] == found["filesystems"] == "all days, recomputed"
    assert found["polls.columns"] == "inputs that land later"
    assert found["schedule.cron"] == found["engine.memory_limit"] == "the next commands"


def test_settings_are_printed_as_table_and_json(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path, '[engine]\nmemory_limit = "2GB"\n')
    code, out, _ = cli("--settings", str(path), "settings", "--set")
    assert code == 0
    assert str(path) in "".join(out.split())
    assert [line.split() for line in out.splitlines() if "memory" in line] == [
        ["engine.memory_limit", "2GB", "set", "the", "next", "commands"]
    ]
    code, out, _ = cli("--settings", str(path), "settings", "--json")
    assert code == 0
    assert {one["name"]: one["value"] for one in json.loads(out)["settings"]}["engine.memory_limit"] == "2GB"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[schedule]\ncron = "61 2 * * *"', "schedule.cron: is not a cron line"),
        ('[schedule]\ncron = "0 0 31 2 *"', "schedule.cron: is not a cron line"),
        (
            '[schedule]\ntime_zone = "Mars/Olympus"',
            "schedule.time_zone: is not an IANA time zone such as",
        ),
        ('[jobs]\ntime_zone = "../../etc/passwd"', "jobs.time_zone: is not an IANA time zone"),
        ('[engine]\nmemory_limit = "lots"', "engine.memory_limit: must be an amount of memory"),
        ('[signatures]\nmethds = ["iosi"]', "unknown setting; did you mean signatures.methods?"),
        ('[catalogue]\nkind = "postgresql"', "catalogue: uri needs kind = 'postgresql' or 'rest'"),
        ('[schedule]\nprometheus = ["http://ann:x@host"]', "schedule.prometheus.0: contains a password"),
        ('[schedule]\nprometheus = ["host:9090"]', "schedule.prometheus.0: is not a URL"),
        ("[prometheus]\nmatchers = 'job=lustre'", "prometheus.matchers: must be label matchers"),
        ("[prometheus]\nmatchers = '} or vector(1)'", "prometheus.matchers: must be label matchers"),
        ('[catalogue]\nkind = "rest"\nuri = "https://db?token=x"', "catalogue.uri: contains a password"),
        ('[catalogue]\nlocation = "s3://bucket"', "catalogue: warehouse and location need kind = 'rest'"),
        (
            '[catalogue]\nkind = "postgresql"\nuri = "postgresql://me:secret@db/iosig"',
            "catalogue.uri: contains a password: move it to PGPASSWORD or ~/.pgpass (libpq)",
        ),
        ('[catalogue]\nkind = "postgresql"\nuri = "mysql://db/iosig"', "must begin with postgresql://"),
        ("[schedul]\n", "schedul: unknown setting; did you mean schedule?"),
        ("[engine]\nxyzzy = 1", "unknown setting; available: memory_limit, worker_count"),
    ],
)
def test_invalid_settings_file_is_refused_when_read(tmp_path: Path, text: str, sentence: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as told_of:
        load(None, tmp_path)
    assert str(path) in str(told_of.value)
    assert sentence in str(told_of.value)
