"""`iosig who` and `iosig slowdowns` in 80 columns, as JSON and as a figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.image import imread

from iosig.warehouse.store.store import Store
from tests.flows.attributed_releases import attributed
from tests.nights import Cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("who") / "warehouse")
    attributed(made)
    return made


def test_who_lists_jobs_users_and_unattributed_bytes(store: Store, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "who.png"
    asked = ("--since", "2018-02-09T10:00", "--until", "2018-02-09T10:02", "--top", 2, "--plot", path)
    code, out, err = cli("--warehouse", store.root, "who", "lake", *asked)
    assert (code, err) == (0, f"Drawn: {path}\n")
    lines = [line.split() for line in out.splitlines()]
    assert out.splitlines()[0] == "lake, 2018-02-09 10:00Z to 2018-02-09 10:02Z: 1.35 kB moved"
    assert ["2", "ann/s3d/8", "640", "B", "47%", "640-640", "1.00", "counted"] in lines
    assert ["ann", "2", "1.04", "kB", "77%", "0.94-1.14", "0.85", "good"] in lines
    assert "By job, the first 2 of 3" in out
    assert (
        "Unattributed: 190 B, 14%.\n1 other job was running without attributed bytes:\n  4 (bob, ior): perhaps 43 B\n"
        in out
    ), "its application's other run, 3, is known to move"
    assert "Likeliest" not in out, "the jobs' own order says it"
    assert max(map(len, out.splitlines())) <= 80
    assert imread(path).shape[1] == 1440


def test_likely_jobs_are_ordered_with_unattributed_bytes(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "who", "lake", "--at", "2018-02-09T10:00:30")
    assert code == 0
    said = out[out.index("Most likely top jobs, including unattributed bytes:") :].splitlines()
    assert [line.split()[0] for line in said[1:]] == ["1", "4", "2"]
    assert said[3] == "  2 (ann, s3d): perhaps 40 B", "what servers counted is all of it"


def test_json_lists_jobs_and_candidates(store: Store, cli: Cli) -> None:
    minute = ("--at", "2018-02-09T10:01:30", "--direction", "write", "--json")
    code, out, _ = cli("--warehouse", store.root, "who", "lake", *minute)
    told = json.loads(out)
    assert (code, told["measured_bytes"], [row["job_id"] for row in told["jobs"]]) == (0, 1000, ["2", "1", "3"])
    assert [row["job_id"] for row in told["candidate_jobs"]] == ["2", "1", "3"]


def test_slowdowns_lists_slowed_runs(store: Store, cli: Cli) -> None:
    asked = ("--since", "2018-02-09T10:00", "--until", "2018-02-09T10:03", "--top", 1)
    code, out, _ = cli("--warehouse", store.root, "slowdowns", "lake", *asked)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "lake, 2018-02-09 10:00Z to 2018-02-09 10:03Z: 2 runs were slowed, of 3 with detected bursts"
    assert "Slowed, the first 1 of 2" in out
    row = ["1", "ann/ior/8", "100", "s", "75-125", "0.80", "2/3", "bob/ior/8", "400", "B"]
    assert row in [line.split() for line in lines]
    code, out, _ = cli("--warehouse", store.root, "slowdowns", "lake", *asked, "--json")
    assert (code, json.loads(out)["runs"][0]["delay_s"]) == (0, 100)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("sea", "--at", "2018-02-09T10:01"), 2, "lake, pond"),
        (("lake", "--at", "2019-02-09T10:01", "--strict"), 5, "No polls of lake from 2019"),
    ],
)
def test_missing_time_or_polls_is_reported_in_one_sentence(
    store: Store, cli: Cli, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    found, out, err = cli("--warehouse", store.root, "who", *arguments)
    assert (found, out) == (code, "")
    assert sentence in err
