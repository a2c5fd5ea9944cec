"""Selected steps: how names and operators select them, and the release that a selected run publishes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from iosig.flows import executors, nightly
from iosig.flows.selection import select_steps
from iosig.flows.steps.order import WORK_STEPS
from iosig.flows.steps.plan import Plan, make_plan
from iosig.settings.model import Settings
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.releases.reading import count_differences
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.nights import Cli, Night, land_files, read_tables, run_night

CHANGED = Settings.model_validate({"classes": {"min_duration_s": 7200}})


def run(store: Store, *select: str, settings: Settings | None = None, **options: Any) -> Release:
    return run_night(store, settings, selection=select_steps(store, select) if select else None, **options)


def changed_tables(store: Store, before: Release, after: Release) -> set[str]:
    """Return the tables with different rows, except for the tables of check results."""
    names = {name for name, _, *changes in count_differences(store, before, after) if any(changes)}
    return names - {"quality", "quality_daily"}


# ---- selectors


@pytest.mark.parametrize(
    ("select", "exclude", "steps"),
    [
        (["networks"], [], {"networks"}),
        (["network_edges"], [], {"networks"}),
        # a step and a table have this name
        (["periods"], [], {"periods", "inference", "classes", "traces"}),
        # an intermediate table is computed, since no release keeps it
        (["job_io_sources"], [], {"samples", "exact samples", "traces", "job i/o sources"}),
        (["stage queue", "rejects"], [], {"stage queue", "rejects"}),
        (["stage-queue rejects"], [], {"stage queue", "rejects"}),
        (["1+networks"], [], {"networks", "stage traces"}),
        (["+stage traces"], [], {"stage traces", "stage jobs", "quarantine"}),
        (["stage-traces+1,networks+"], [], {"networks"}),
        (["stage traces+1"], ["traces+"], {"stage traces", "networks", "metadata periods"}),
    ],
)
def test_names_and_operators_select_steps(
    select: list[str], exclude: list[str], steps: set[str], tmp_path: Path
) -> None:
    selection = select_steps(Store(tmp_path), select, exclude)
    order = [step.name for step in WORK_STEPS]
    assert sorted(selection.steps, key=order.index) == list(selection.steps)
    assert set(selection.steps) == steps


def test_upstream_and_downstream_selections_omit_unrelated_steps(tmp_path: Path) -> None:
    store = Store(tmp_path)
    everything = set(select_steps(store, [], ["networks"]).steps) | {"networks"}
    assert everything == {step.name for step in WORK_STEPS}
    upstream, downstream = (set(select_steps(store, [name]).steps) for name in ("+inference", "stage polls+"))
    assert {"stage polls", "samples", "signatures", "inference"} <= upstream & downstream
    assert "networks" not in upstream | downstream


@pytest.mark.parametrize("step", WORK_STEPS, ids=lambda step: step.name)
def test_intermediate_tables_of_a_selected_step_are_computed(step: Any, tmp_path: Path) -> None:
    selection = select_steps(Store(tmp_path), [step.name])
    written = {table.name for other in WORK_STEPS for table in other.writes}
    for other in WORK_STEPS:
        if other.name in selection.steps and other.name != "quarantine":
            read = [table for source in other.reads if source.wait != "none" for table in source.tables]
            kept_nowhere = {table.name for table in read if not table.is_published} & written
            assert kept_nowhere <= selection.tables


@pytest.mark.parametrize(
    ("select", "exclude", "sentence"),
    [
        (
            ["clases"],
            [],
            r"No step or table is named 'clases'\. Did you mean classes\? `iosig lineage` lists them\.",
        ),
        (["job_io++"], [], r"table is named 'job_io\+\+'\. Did you mean job_io"),
        (["zzzz"], [], r"table is named 'zzzz'\. `iosig lineage`"),
        (["networks"], ["networks+"], "The selection has no steps"),
        ([""], [], "The selection has no steps"),
        (["inference"], ["traces"], "inference reads client_io, which traces computes and no release keeps"),
    ],
)
def test_invalid_selection_is_refused(select: list[str], exclude: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        select_steps(Store(tmp_path), select, exclude)


def test_table_missing_in_the_base_release_is_named_with_its_step(
    quick_night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = {name: snapshot for name, snapshot in quick_night.release.snapshots.items() if name != "trace_jobs"}
    base = replace(quick_night.release, snapshots=snapshots)
    monkeypatch.setattr(releases, "current", lambda _: base)
    with pytest.raises(UsageError, match=r"networks reads trace_jobs, which release .* Select stage-traces, too"):
        select_steps(quick_night.store, ["networks"])
    assert "stage traces" in select_steps(quick_night.store, ["1+networks"]).steps


def test_selection_without_a_release_is_refused(site: Store) -> None:
    with pytest.raises(UsageError, match=r"No release exists yet .* Run once without --select"):
        run(site, "classes")


# ---- plans


def test_selection_uses_the_inputs_of_the_base_release(quick_night: Night, tmp_path: Path) -> None:
    store = quick_night.copy(tmp_path / "warehouse")
    land_polls(store, tmp_path)
    selection = select_steps(store, ["networks"])
    plan = make_plan(store, Settings(), selection=selection)
    assert (plan.inputs, plan.reasons) == ((), ("selected steps: networks",))
    assert plan.job_days == (date(2026, 3, 2), date(2026, 3, 3)), "all days of the release"
    assert plan.landed.in_force.height == 2
    assert make_plan(store, Settings(), date(2026, 3, 3), selection=selection).days == (date(2026, 3, 3),)
    assert len({one.fingerprint for one in (plan, make_plan(store, Settings()), planned(store, "rejects"))}) == 3


def planned(store: Store, *select: str, settings: Settings | None = None) -> Plan:
    return make_plan(store, settings or Settings(), selection=select_steps(store, select))


def land_polls(store: Store, folder: Path) -> None:
    late = folder / "late.csv"
    late.write_text(
        "polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n2026-03-03T00:10:00Z,c9,10,5000000,0\n"
    )
    land_files(store, late)


def test_dry_run_shows_the_selected_steps(cli: Cli, quick_night: Night) -> None:
    root = quick_night.store.root
    code, out, _ = cli("--warehouse", root, "run", "--dry-run", "--json", "--select", "networks rejects", "-s", "jobs")
    steps = {step["step"] for step in json.loads(out)["steps"]}
    assert (code, steps) == (0, {"networks", "rejects", "stage jobs", "quarantine", "checks"})
    code, _, err = cli("--warehouse", root, "run", "--select", "network")
    assert code == 2
    assert "Did you mean networks" in err


# ---- releases


@pytest.mark.usefixtures("quick_checks")
class TestSelectedRelease:
    def test_only_selected_tables_are_rebuilt(self, quick_night: Night, tmp_path: Path) -> None:
        store, base = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        release = run(store, "classes", settings=CHANGED)
        assert (release.kind, release.parent_release_id, release.input_count) == ("select", base.release_id, 0)
        rebuilt = {name for name, snapshot in release.snapshots.items() if snapshot != base.snapshots[name]}
        assert {"classes", "periods"} <= rebuilt
        assert not {"jobs", "samples", "job_io", "signatures", "filesystem_rates"} & rebuilt
        assert changed_tables(store, base, release) == {"classes"}
        with pytest.raises(NothingToDo, match=f"those of release {release.release_id}"):
            run(store, "classes", settings=CHANGED)
        assert releases.current(store) == release
        assert not list(store.builds.iterdir())

    @pytest.mark.slow
    def test_next_run_recomputes_all_after_changed_settings(self, quick_night: Night, tmp_path: Path) -> None:
        store, base = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        whole = quick_night.copy(tmp_path / "whole")
        selected = run(store, "inference", settings=CHANGED)
        assert selected.parameters not in (base.parameters, CHANGED.parameters())
        assert (
            "a selected run computed steps with other settings: classes, inference, periods, traces"
            in make_plan(store, Settings()).reasons
        )
        # further selected runs with any settings do not change that
        mixed = planned(store, "inference").released_parameters
        assert mixed not in (base.parameters, CHANGED.parameters())
        after, expected = run(store, settings=CHANGED), run(whole, settings=CHANGED)
        assert after.parameters == CHANGED.parameters()
        assert read_tables(store, after) == read_tables(whole, expected)
        with pytest.raises(NothingToDo):
            run(store, settings=CHANGED)

    @pytest.mark.long
    def test_return_to_former_settings_recomputes_all(self, quick_night: Night, tmp_path: Path) -> None:
        store, base = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        selected = run(store, "classes", settings=CHANGED)
        assert "classes" in changed_tables(store, base, selected)
        assert changed_tables(store, base, run(store)) == set()

    @pytest.mark.long
    def test_inputs_landed_since_the_base_wait_for_the_next_run(self, quick_night: Night, tmp_path: Path) -> None:
        store, base = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        land_polls(store, tmp_path)
        with pytest.raises(NothingToDo, match=f"those of release {base.release_id}"):
            run(store, "stage polls+")
        later = run(store)
        assert (later.input_count, later.dates) == (1, ("2026-03-03",))
        assert "filesystem_rates" in changed_tables(store, base, later)

    @pytest.mark.parametrize("step", WORK_STEPS, ids=lambda step: step.name)
    @pytest.mark.long
    def test_each_step_recomputes_equal_tables_from_a_release(
        self, step: Any, quick_night: Night, tmp_path: Path
    ) -> None:
        store = quick_night.copy(tmp_path / "warehouse")
        with pytest.raises(NothingToDo, match="The selected tables are identical to those of release"):
            run(store, step.name)

    def test_day_range_computes_only_its_days(self, quick_night: Night, tmp_path: Path) -> None:
        store, base = quick_night.copy(tmp_path / "warehouse"), quick_night.release
        release = run(store, "classes", settings=CHANGED, since=date(2026, 3, 3))
        assert release.dates == ("2026-03-03",)
        changes = {name: sum(counts) for name, _, *counts in count_differences(store, base, release)}
        assert changes["classes"] == 4, "half of the runs ended on that day"

    @pytest.mark.slow
    def test_killed_selected_run_is_resumed(
        self, quick_night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, whole = quick_night.copy(tmp_path / "warehouse"), quick_night.copy(tmp_path / "whole")

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(publishing, "publish", killed)
            with pytest.raises(KeyboardInterrupt):
                run(store, "classes", settings=CHANGED)
        steps = nightly.plan_steps(store, CHANGED, planned(store, "classes", settings=CHANGED))
        assert {step.name: step.complete_item_count for step in steps}["classes"] == 3, "two days, and undated"
        resumed, expected = run(store, "classes", settings=CHANGED), run(whole, "classes", settings=CHANGED)
        assert read_tables(store, resumed) == read_tables(whole, expected)
        assert resumed.parameters == expected.parameters

    @pytest.mark.long
    def test_processes_and_inline_runs_give_equal_tables(self, quick_night: Night, tmp_path: Path) -> None:
        stores = [quick_night.copy(tmp_path / name) for name in ("inline", "processes")]
        inline = run(stores[0], "samples+", settings=CHANGED)
        with executors.with_processes(2) as engine:
            other = run(stores[1], "samples+", settings=CHANGED, engine=engine)
        assert read_tables(stores[0], inline) == read_tables(stores[1], other)
