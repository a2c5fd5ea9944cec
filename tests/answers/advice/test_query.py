"""`iosig advise`: its site state, signatures, recommendations and documentation agree."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iosig.answers.advice.feed import export_feed
from iosig.answers.advice.inputs import SiteState
from iosig.answers.advice.landed import _union_length_s, site_state
from iosig.answers.advice.mix import MAX_BURSTS, MAX_FILESYSTEMS, MAX_RUNNING, read_mix
from iosig.answers.advice.query import Query, choose
from iosig.answers.advice.signatures import FeedSignatures, ReleaseSignatures
from iosig.reports.texts import printable
from iosig.settings.model import AdviceSettings, Settings, load
from iosig.warehouse.errors import InputRefused, NothingToDo, UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store
from tests.contract_pages import DOCS, code_of, needs_lua, run_hook, tables_of
from tests.flows.advised_sites import NOON, at, land_site, publish_site
from tests.nights import Cli

PAGE = DOCS / "advice.md"
NOW = ("--at", "2018-02-09T12:00:00Z")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("advice")
    made = Store(root / "warehouse")
    land_site(made, root / "in")
    publish_site(made)
    return made


@pytest.fixture(scope="module")
def signatures(store: Store) -> ReleaseSignatures:
    return ReleaseSignatures(store, releases.find(store, None))


@pytest.fixture(scope="module")
def feed(store: Store) -> Path:
    path = store.root.parent / "signatures.json"
    export_feed(store, releases.find(store, None), "signatures", path, 36_500.0)
    return path


@pytest.fixture(scope="module")
def state(store: Store, signatures: ReleaseSignatures) -> SiteState:
    return site_state(store, releases.find(store, None), Settings(), signatures, None)


def mix(**changes: Any) -> Row:
    running = [{"name": "1", "elapsed_s": 0, "bursts": [{"start_s": 0, "duration_s": 100, "volume_bytes": 1e11}]}]
    filesystem = {"filesystem": "a", "capacity_bytes_per_s": 1e9, "load_bytes_per_s": 0, "running": running}
    return {"format": "iosig-mix/1", "at": "2018-02-09T12:00:00Z", "filesystems": [filesystem | changes]}


def parsed(document: object, signatures: ReleaseSignatures | None = None) -> Any:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_mix(io.BytesIO(content), "mix.json", signatures, AdviceSettings(), NOON)


# ---- landed data


@pytest.mark.slow
def test_site_state_is_of_the_newest_poll(state: SiteState) -> None:
    assert (state.at, state.excluded) == (NOON, ())
    projects, scratch = state.filesystems
    assert (projects.filesystem, scratch.filesystem) == ("projects", "scratch")
    # scratch has its highest full minute; the highest minute of projects was below its current rate
    assert (scratch.capacity_bytes_per_s, scratch.capacity_basis) == (5e9, "observed")
    assert (scratch.capacity_observed_at, projects.capacity_observed_at) == (at(-179), NOON)
    assert projects.capacity_bytes_per_s == 2.5e8


def test_background_is_traffic_without_a_signature(state: SiteState) -> None:
    projects, scratch = state.filesystems
    assert scratch.load is not None
    assert (scratch.load.from_s_ago, scratch.load.until_s_ago) == (600, 0)
    # 30 s of the running job, and 120 s of the ended job
    assert scratch.attributed_bytes_per_s == pytest.approx((30 * 2e9 + 120 * 4e9) / 600)
    assert scratch.background_bytes_per_s == pytest.approx(1e9, rel=1e-6)
    assert [(job.name, job.status, job.elapsed_s) for job in scratch.now_running] == [
        ("500", "known", 300),
        ("501", "unknown", 300),
    ]
    # its signature covers all node counts and is over: its present traffic counts as background
    assert [(job.name, job.status) for job in projects.now_running] == [("502", "over")]
    assert projects.background_bytes_per_s == pytest.approx(2.5e8)


def test_past_instant_can_be_queried(store: Store, signatures: ReleaseSignatures) -> None:
    state = site_state(store, releases.find(store, None), Settings(), signatures, at(-8))
    scratch = state.filesystems[1]
    assert [(job.name, job.elapsed_s) for job in scratch.now_running] == [("503", 420)]
    assert scratch.background_bytes_per_s == pytest.approx(1e9, rel=1e-6)
    assert scratch.load is not None
    assert scratch.load.measured_until == at(-8)


def test_file_systems_without_recent_polls_or_capacity_are_excluded(
    store: Store, signatures: ReleaseSignatures
) -> None:
    release = releases.find(store, None)
    settings = Settings(advice=AdviceSettings(capacity_bytes_per_s={"scratch": 8e9, "idle": 1e9}))
    state = site_state(store, release, settings, signatures, NOON, ["scratch", "idle", "nix"])
    assert [(one.filesystem, one.capacity_bytes_per_s, one.capacity_basis) for one in state.filesystems] == [
        ("scratch", 8e9, "settings")
    ]
    assert {one.filesystem for one in state.excluded} == {"idle", "nix"}
    late = site_state(store, release, Settings(), signatures, NOON + timedelta(days=2))
    assert late.filesystems == ()
    assert all("24 hours" in one.reason for one in late.excluded)
    first = releases.find(store, "2018-02-09-signatures")
    assert {one.filesystem for one in site_state(store, first, Settings(), signatures, NOON).excluded} == {
        "scratch",
        "projects",
    }


def test_jobs_use_the_file_systems_of_their_partition(store: Store, signatures: ReleaseSignatures) -> None:
    settings = Settings.model_validate(
        {"jobs": {"filesystem_pattern": "(never)"}, "partitions": {"batch": ["projects"]}}
    )
    state = site_state(store, releases.find(store, None), settings, signatures, NOON)
    assert [len(one.now_running) for one in state.filesystems] == [4, 0]
    both = site_state(
        store, releases.find(store, None), Settings.model_validate({"jobs": settings.jobs}), signatures, NOON
    )
    assert [len(one.now_running) for one in both.filesystems] == [4, 4]


def test_file_system_names_of_the_job_log_are_translated(store: Store, signatures: ReleaseSignatures) -> None:
    settings = Settings(filesystems={"nowhere": "projects"})
    state = site_state(store, releases.find(store, None), settings, signatures, NOON)
    assert [job.name for job in state.filesystems[0].now_running] == ["502", "504"]


def test_polls_with_different_intervals_cover_time_once() -> None:
    starts, ends = np.array([0.0, 0.0, 2.0, 10.0]), np.array([2.0, 6.0, 4.0, 12.0])
    assert _union_length_s(starts, ends) == 8.0


def test_missing_polls_leave_nothing_to_do(tmp_path: Path, signatures: ReleaseSignatures) -> None:
    with pytest.raises(NothingToDo, match="iosig land"):
        site_state(Store(tmp_path), None, Settings(), signatures, None)


# ---- selection of the application


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Query("ana/late/16"), "ana/late/16"),
        (Query("late", node_count=32), "ana/late/32"),
        (Query("LATE/16", user="ana"), "ana/late/16"),
        (Query("many", node_count=77), "bob/many/*"),
        (Query("ckpt"), "eve/ckpt/8"),
    ],
)
def test_application_is_found_by_a_part_of_its_id(query: Query, found: str, signatures: ReleaseSignatures) -> None:
    assert choose(signatures, query) == found


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (Query("rare"), "too_few_samples.*iosig run"),
        (Query("calm"), "any file system will do"),
        (Query("new", user="zoe"), "samples of 0 of its runs"),
        (Query("late", node_count=64), r"Signatures exist for ana/late/16, ana/late/32"),
        (Query("late", user="zoe"), "named 'late' of user 'zoe'"),
        (Query("nix"), "5 others have one"),
        (Query("ana/laet/16"), "Did you mean ana/late/16"),
        (Query(""), "iosig run"),
    ],
)
def test_missing_signature_is_explained_with_alternatives(
    query: Query, told: str, signatures: ReleaseSignatures
) -> None:
    with pytest.raises(NothingToDo, match=told):
        choose(signatures, query)


def test_ambiguous_application_is_refused_with_candidates(signatures: ReleaseSignatures) -> None:
    with pytest.raises(UsageError, match=r"ana/late/16, ana/late/32.*--nodes"):
        choose(signatures, Query("late"))


# ---- signatures


def test_release_and_its_feed_give_equal_signatures(signatures: ReleaseSignatures, feed: Path) -> None:
    other = FeedSignatures(feed)
    assert other.application_ids() == signatures.application_ids()
    names = signatures.application_ids()
    curves, bursts = signatures.find(names), other.find(names)
    assert [(name, sorted(curves[name])) for name in curves] == [(name, sorted(bursts[name])) for name in bursts]
    for name in names:
        for filesystem, curve in curves[name].items():
            burst = bursts[name][filesystem]
            assert burst.rates.duration_s == curve.rates.duration_s
            seconds = np.arange(curve.rates.duration_s + 1)
            assert burst.rates.cumulative_bytes(seconds) == pytest.approx(
                curve.rates.cumulative_bytes(seconds), rel=1e-9
            )
            assert (burst.confidence, burst.sample_count, burst.last_run_ended_at, burst.method) == (
                pytest.approx(curve.confidence),
                curve.sample_count,
                curve.last_run_ended_at,
                curve.method,
            )


def test_signatures_of_both_directions_add_up(signatures: ReleaseSignatures) -> None:
    known = signatures.find(["ana/late/16"])["ana/late/16"]["scratch"]
    assert known.rates.volume_bytes == 2 * 120 * 3e9 + 10 * 1e9
    assert known.outcomes == {"read": "extracted", "write": "extracted"}
    # each written burst has a support of six out of six runs, each read burst of six out of five
    assert known.confidence == pytest.approx((720 * 7 / 8 + 10 * 7 / 7) / 730)
    assert known.sample_count == 5


def damaged(feed: Path, tmp_path: Path, **changes: Any) -> Path:
    document = json.loads(feed.read_text())
    for name, value in changes.items():
        target = document if name in ("format", "kind") else document["entries"][1]
        target[name] = value
    path = tmp_path / "feed.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "iosig-feed/2"}, "format"),
        ({"kind": "periods"}, "kind"),
        ({"bursts": []}, r"entries\[1\]"),
        (
            {"bursts": [{"start_s": 0, "duration_s": 1, "volume_bytes": float("nan")}]},
            r"bursts\[0\].volume_bytes: .*finite",
        ),
        ({"bursts": [{"start_s": 0, "duration_s": 1e12, "volume_bytes": 1}]}, "end after more than"),
        ({"bursts": [{"start_s": {}, "duration_s": 1, "volume_bytes": 1}]}, r"entries\[1\]"),
        ({"bursts": 3}, r"entries\[1\]"),
        ({"valid_until": "soon"}, r"entries\[1\]"),
        ({"valid_until": None}, r"entries\[1\]"),
        ({"application_id": 3}, r"entries\[1\].application_id: .*string"),
        ({"confidence": 2}, "confidence"),
        ({"duration_s": 1e300}, "duration"),
    ],
)
def test_damaged_feed_entry_is_refused_with_its_path(changes: Row, told: str, feed: Path, tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match=told):
        FeedSignatures(damaged(feed, tmp_path, **changes))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"entries": 3}', b"[" * 200_000, b"\xff\xfe"])
def test_file_that_is_not_a_feed_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "feed.json").write_bytes(content)
    with pytest.raises(InputRefused, match="feed"):
        FeedSignatures(tmp_path / "feed.json")


# ---- job mixes


def test_mix_accepts_applications_and_explicit_bursts(signatures: ReleaseSignatures) -> None:
    running = [
        {"name": "1", "application_id": "eve/ckpt/8", "elapsed_s": 100},
        {"name": "2", "application_id": "bob/many/12", "elapsed_s": 1},
        {"name": "3", "application_id": "nix", "elapsed_s": 1},
        {"name": "4", "application_id": "old/app/2", "elapsed_s": 1},
        {"name": "5", "elapsed_s": 50, "bursts": [{"start_s": 40, "duration_s": 20, "volume_bytes": 6e10}]},
        {"name": "6", "elapsed_s": 9, "bursts": []},
    ]
    state = parsed(mix(running=running, load_bytes_per_s=1e9), signatures)
    (one,) = state.filesystems
    assert [job.status for job in one.running] == ["known", "known", "unknown", "unknown", "known", "over"]
    assert one.attributed_bytes_per_s == pytest.approx((30 * 2e9 + 1e9 + 3e10) / 600)
    assert parsed(mix(running=running)).filesystems[0].running[0].status == "unknown", "there are no signatures"
    assert parsed(mix(load_bytes_per_s=None, background_bytes_per_s=5)).filesystems[0].background_bytes_per_s == 5
    assert parsed(mix() | {"at": None}).at == NOON


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON"),
        ([], "the document"),
        ({"format": "iosig-mix/2", "filesystems": []}, r"format: .*filesystems: "),
        (mix() | {"extra\u202e\x1b": 1}, "extra\ufffd\ufffd: Extra inputs"),
        (mix(capacity_bytes_per_s=0), r"filesystems\[0\].capacity_bytes_per_s: .*greater than 0"),
        (mix(capacity_bytes_per_s=float("inf")), "capacity_bytes_per_s"),
        (mix(capacity_bytes_per_s="1e9"), "capacity_bytes_per_s"),
        (mix(load_bytes_per_s=None), "give either load_bytes_per_s"),
        (mix(background_bytes_per_s=1), "give either load_bytes_per_s"),
        (mix(load_bytes_per_s=float("nan")), "load_bytes_per_s"),
        (mix(running=[{"name": "1"}]), r"filesystems\[0\].running\[0\].elapsed_s"),
        (mix(running=[{"name": "1", "elapsed_s": -1}]), "elapsed_s"),
        (mix(running=[{"name": "1", "elapsed_s": 1, "application_id": "a", "bursts": []}]), "not both"),
        (mix(running=[{"name": "1", "elapsed_s": 1}] * (MAX_RUNNING + 1)), f"more than {MAX_RUNNING}"),
        (mix(running=[{"name": "1", "elapsed_s": 1, "bursts": [{}] * (MAX_BURSTS + 1)}]), f"more than {MAX_BURSTS}"),
        (mix() | {"filesystems": mix()["filesystems"] * 2}, "given twice"),
        (mix() | {"filesystems": mix()["filesystems"] * (MAX_FILESYSTEMS + 1)}, f"more than {MAX_FILESYSTEMS}"),
        (mix() | {"filesystems": []}, "filesystems: is empty"),
        (mix() | {str(number): 1 for number in range(99)}, "the document: has more than 64 fields"),
        (mix() | {"at": "noon"}, "at: "),
        (mix() | {"at": "2018-02-09T12:00:00"}, "at: .*timezone"),
    ],
)
def test_invalid_mix_is_refused_with_its_path(document: object, told: str) -> None:
    with pytest.raises(InputRefused, match=told) as refused:
        parsed(document)
    assert "docs/advice.md" in str(refused.value)


# ---- the command


def advise(cli: Cli, *arguments: object) -> Row:
    code, out, err = cli(*arguments, "--json")
    assert code == 0, err
    found: Row = json.loads(out)
    return found


def test_command_ranks_file_systems_and_recommends_a_delay(cli: Cli, store: Store) -> None:
    told = advise(cli, "--warehouse", store.root, "advise", "late", "--nodes", 16, *NOW, "--max-delay", "5m")
    assert (told["format"], told["state_from"], told["max_delay_s"]) == ("iosig-advice/1", "warehouse", 300)
    scratch, projects = told["choices"]
    assert (scratch["filesystem"], scratch["rank"], scratch["rank_now"]) == ("scratch", 1, 1)
    # the next burst of ckpt starts in a minute and lasts two, as does the application's: all of it is contended, or
    # slightly less if either starts some seconds earlier
    assert 0.8 * 120 * 3e9 < scratch["now"]["contended_bytes"] <= 120 * 3e9
    assert 110 <= scratch["best"]["delay_s"] <= 150
    assert scratch["best"]["contended_bytes"] < 0.05 * scratch["now"]["contended_bytes"]
    assert scratch["best"]["start_at"] == f"{NOON + timedelta(seconds=scratch['best']['delay_s']):%FT%TZ}"
    assert (scratch["load_age_s"], scratch["is_stale"]) == (0, False)
    assert (scratch["known_job_count"], scratch["unknown_job_count"]) == (1, 1)
    # nothing fits there, whenever it starts
    assert projects["best"] == projects["now"]
    assert projects["now"]["contended_bytes"] == pytest.approx(730e9, rel=1e-6)


def fields_of(found: Row, name: str) -> None:
    """Require that an object of the document has the documented fields and values."""
    types = {"string": str, "number": int | float, "integer": int, "boolean": bool, "object": dict, "array": list}
    told = tables_of(PAGE)[name]
    assert [f"`{field}`" for field in found] == [field for field, *_ in told]
    for field, (_, kind, _, may_be_null, _) in zip(found, told, strict=True):
        assert (found[field] is None and may_be_null == "yes") or isinstance(found[field], types[kind]), field  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["warehouse", "mix"])
def test_json_has_the_documented_fields(source: str, cli: Cli, store: Store, feed: Path, tmp_path: Path) -> None:
    (tmp_path / "mix.json").write_text(json.dumps(mix()))
    told = {"warehouse": NOW, "mix": ("--mix", tmp_path / "mix.json", "--signatures", feed)}[source]
    found = advise(
        cli, "--warehouse", store.root, "advise", "ckpt", "--filesystem", "scratch", "--filesystem", "a", *told
    )
    fields_of(found, "The document")
    fields_of(found["application"], "The application")
    for choice in found["choices"]:
        fields_of(choice, "Choices")
        for expected in (choice["now"], choice["best"]):
            fields_of(expected, "Expected contention")
        for job in choice["running"]:
            fields_of(job, "Jobs")
        assert len(choice["delays_s"]) == len(choice["contended_bytes"])
    assert len(found["choices"]) == 1
    assert [one["filesystem"] for one in found["excluded"]] == ["a" if source == "warehouse" else "scratch"]


def test_feed_and_mix_need_no_warehouse(cli: Cli, feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(mix(capacity_bytes_per_s=5e9)).encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    where = ("--warehouse", tmp_path / "none")
    found = advise(cli, *where, "advise", "ana/late/16", "--signatures", feed, "--mix", "-")
    assert (found["signatures_from"], found["state_from"], found["release_id"]) == (
        "feed",
        "mix",
        "2018-02-09-filesystem_rates",
    )
    (choice,) = found["choices"]
    assert (choice["capacity_basis"], choice["load_age_s"], choice["is_stale"]) == ("mix", None, False)
    assert choice["now"]["contended_bytes"] == choice["best"]["contended_bytes"] == 0
    assert not (tmp_path / "none").exists()


def test_table_shows_the_signature_and_warnings(cli: Cli, store: Store) -> None:
    code, out, err = cli(
        "--warehouse", store.root, "advise", "late/16", "--filesystem", "scratch", "--filesystem", "nix"
    )
    assert code == 0, err
    assert "730 GB in 600 s, up to 3 GB/s; confidence 0.88" in out
    row = next(line for line in out.splitlines() if line.split()[:2] == ["1", "scratch"])
    assert "5 GB/s*" in row
    assert "STALE: the last poll of scratch is" in out
    assert "Excluded: nix" in out


def test_figure_is_drawn(cli: Cli, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "advice.png"
    code, _, err = cli("--warehouse", store.root, "advise", "late/16", *NOW, "--plot", path)
    assert (code, path.read_bytes()[:4]) == (0, b"\x89PNG")
    assert "Drawn: 2 file systems" in err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["late"], 2, "--nodes"),
        (["late/16", "--max-delay", "8d"], 2, "7 days"),
        (["late/16", "--mix", "MIX", "--at", "2018-02-09"], 2, "--mix cannot be combined with --at"),
        (["late/16", "--signatures", "FEED", "--release", "x"], 2, "--signatures cannot be combined with --release"),
        (["late/16", "--mix", "nix.json"], 3, "nix.json"),
        (["late/16", "--signatures", "MIX"], 3, "export signatures --feed"),
        (["rare", "--strict"], 5, "too_few_samples"),
        (["old", "--strict"], 5, "expired at 2018-01-30"),
        (["late/16", "--filesystem", "nix"], 0, "nix: unknown: no polls"),
    ],
)
def test_impossible_advice_is_reported_in_one_sentence(
    arguments: list[str], code: int, told: str, cli: Cli, store: Store, feed: Path, tmp_path: Path
) -> None:
    (tmp_path / "mix.json").write_text(json.dumps(mix()))
    places = {"MIX": tmp_path / "mix.json", "FEED": feed}
    found, out, err = cli("--warehouse", store.root, "advise", *[places.get(text, text) for text in arguments])
    assert (found, out, told in err) == (code, "", True), err


def test_configured_capacities_must_be_positive_and_finite(tmp_path: Path) -> None:
    for value in ("0", "-1", "inf", "nan"):
        (tmp_path / "iosig.toml").write_text(f"[advice.capacity_bytes_per_s]\nscratch = {value}\n")
        with pytest.raises(UsageError, match="above 0 and finite: scratch"):
            load(None, tmp_path)


def test_control_characters_in_names_are_removed(cli: Cli, feed: Path, tmp_path: Path) -> None:
    hostile = "a\x1b[31m\u202e"
    (tmp_path / "mix.json").write_text(json.dumps(mix(filesystem=hostile)))
    code, out, err = cli("advise", "ckpt", "--signatures", feed, "--mix", tmp_path / "mix.json")
    assert code == 0, err
    assert ("\x1b[31m" not in out, printable(hostile, 99) in out) == (True, True)


# ---- the documentation page


def test_documented_mix_is_valid(cli: Cli, feed: Path, tmp_path: Path) -> None:
    (text, *_) = code_of(PAGE, "json")
    (tmp_path / "mix.json").write_text(text)
    state = parsed(json.loads(text))
    assert [job.status for one in state.filesystems for job in one.running] == ["unknown", "known", "unknown"]
    found = advise(cli, "advise", "late/16", "--signatures", feed, "--mix", tmp_path / "mix.json")
    assert {choice["filesystem"] for choice in found["choices"]} == {"scratch", "projects"}


def test_documented_script_creates_a_table_of_advice(cli: Cli, feed: Path, tmp_path: Path) -> None:
    (text, *_) = code_of(PAGE, "json")
    (tmp_path / "mix.json").write_text(text)
    script = next(code for code in code_of(PAGE, "python") if "make_advice_table" in code)
    (tmp_path / "make_advice_table.py").write_text(script)
    code, out, _ = cli("advise", "late/16", "--signatures", feed, "--mix", tmp_path / "mix.json", "--json")
    assert code == 0
    (tmp_path / "advice").mkdir()
    (tmp_path / "advice" / "a.json").write_text(out)
    (tmp_path / "advice" / "b.json").write_text("")
    table = tmp_path / "advice.tsv"
    command = [sys.executable, str(tmp_path / "make_advice_table.py"), str(tmp_path / "advice"), str(table)]
    subprocess.run(command, check=True, timeout=30)
    best = json.loads(out)["choices"][0]
    (line,) = table.read_text().splitlines()
    assert line.split("\t")[:4] == ["ana", "late", "16", best["filesystem"]]
    assert int(line.split("\t")[4]) == NOON.timestamp() + best["best"]["delay_s"]


# ---- the documented hook

#: the part of slurmctld's API that the hook uses
_SLURM = """
slurm = {SUCCESS = 0, ERROR = -1, NO_VAL = 4294967294, log_info = function() end, log_error = print}
dofile("job_submit.lua")
local function submit(name, nodes, begin_time, comment)
    local job = {user_name = "ana", name = name, min_nodes = nodes, begin_time = begin_time, comment = comment}
    local code = slurm_job_submit(job, {}, 1000)
    print(code, job.begin_time, job.comment)
end
"""


@needs_lua
def test_documented_hook_delays_starts(tmp_path: Path) -> None:
    table = [
        ["ana", "late", "16", "scratch", "4000000000", "4000000100"],
        ["ana", "late", "*", "projects", "1000000000", "4000000100"],
        ["ana", "past", "16", "scratch", "4000000000", "1000000000"],
        ["ana", "odd", "*", "a%20b", "4000000000", "4000000100"],
        ["broken"],
    ]
    calls = [
        'submit("late", 16.0, 0)', 'submit("late", 16, 5, "mine")', 'submit("late", slurm.NO_VAL, 0)',
        'submit("late", nil, 0)', 'submit("past", 16, 0)', 'submit("odd", 1, 0)', 'submit("else", 1, 0)',
        "submit(nil, nil, 0)",
    ]  # fmt: skip
    printed = run_hook(PAGE, ("/run/iosig/advice.tsv", table), _SLURM, calls, tmp_path)
    assert printed == [
        "0\t4000000000\tfs=scratch", "0\t5\tmine", *["0\t0\tfs=projects"] * 2, "0\t0\tnil", "0\t4000000000\tnil",
        *["0\t0\tnil"] * 2,
    ]  # fmt: skip
