"""The nightly Prefect flow publishes the same release as inline, with an artifact; tests share a test server."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iosig.flows.steps import order
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step
from iosig.settings.model import Settings
from iosig.streams.landing import Arrival
from iosig.warehouse.errors import GateFailed, MachineFault, UsageError
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.store.store import Store, lock_warehouse
from tests.nights import run_night

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def prefect_server() -> Iterator[None]:
    from prefect.settings import PREFECT_SERVER_ANALYTICS_ENABLED, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    # The server would send telemetry over the network when it starts.
    with temporary_settings({PREFECT_SERVER_ANALYTICS_ENABLED: False}), prefect_test_harness(120):
        yield


@pytest.fixture(autouse=True)
def warehouse_of_the_flow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the test's warehouse in the environment, where the flow looks for it."""
    monkeypatch.delenv("IOSIG_SETTINGS", raising=False)
    if "site" in request.fixturenames:
        monkeypatch.setenv("IOSIG_WAREHOUSE", str(request.getfixturevalue("site").root))


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "quick_checks")
def test_flow_publishes_the_same_release_as_inline(site: Store, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    from iosig.flows.night_flows import nightly

    shutil.copytree(site.root, tmp_path / "inline")
    inline = run_night(Store(tmp_path / "inline"))
    release = nightly()
    assert replace(release, release_id="", created_at="", snapshots={}) == replace(
        inline, release_id="", created_at="", snapshots={}
    )
    assert nightly() is None, "there is nothing new"
    assert releases.history(site) == [release]
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=["iosig-release"])))
        runs = {run.name: run.state_name for run in client.read_task_runs()}
    assert release.release_id in found[0].description
    assert '"job_io"' in found[0].data
    assert {"stage polls 2026-03-02", "stage jobs", "samples 2026-03-03", "classes undated", "checks"} <= runs.keys()


@pytest.mark.usefixtures("prefect_server", "quick_checks")
@pytest.mark.long
def test_completed_work_is_cached_after_a_failed_publication(
    site: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from prefect.client.orchestration import get_client

    from iosig.flows.night_flows import nightly

    def unpublished(*_: object) -> None:
        raise ConnectionError("the server went away")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "publish", unpublished)
        with pytest.raises(ConnectionError):
            nightly()
    assert releases.current(site) is None
    release = nightly()
    assert releases.history(site) == [release]
    with get_client(sync_client=True) as client:
        states = [run.state_name for run in client.read_task_runs() if run.name == "stage polls 2026-03-02"]
    assert "Cached" in states


# ---- failures


def refuse(_: StepContext) -> int:
    raise GateFailed("No release was published: 1 critical check failed.\n- job_io.key_unique: twice")


def sleep(_: StepContext) -> int:
    time.sleep(60)
    return 0


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
class TestFailures:
    def test_failed_gate_is_reported_in_one_sentence_and_as_artifact(
        self, site: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        from prefect.client.orchestration import get_client
        from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

        from iosig.flows.night_flows import nightly

        monkeypatch.setattr(order, "STEPS", (Step("decision", refuse, (), ()),))
        with caplog.at_level("INFO"):
            state = nightly(return_state=True)
        assert state.is_failed()
        assert state.message == "No release was published: 1 critical check failed."
        assert "Traceback" not in caplog.text
        with pytest.raises(GateFailed, match="twice"):
            nightly()
        with get_client(sync_client=True) as client:
            found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=["iosig-gate"])))
        assert "- job_io.key_unique: twice" in found[0].data

    @pytest.mark.parametrize(
        ("parameters", "variables", "sentence"),
        [
            ({"since": "2026-01-05", "until": "2026-01-02"}, {}, "since (2026-01-05) comes after until (2026-01-02)"),
            ({}, {"IOSIG_SETTINGS": "nowhere.toml"}, "Settings file nowhere.toml does not exist."),
            ({}, {"IOSIG_WAREHOUSE": ""}, "Set IOSIG_WAREHOUSE in the environment of the worker"),
        ],
    )
    @pytest.mark.long
    def test_invalid_parameters_and_settings_fail_before_any_step(
        self,
        site: Store,
        monkeypatch: pytest.MonkeyPatch,
        parameters: dict[str, Any],
        variables: dict[str, str],
        sentence: str,
    ) -> None:
        from iosig.flows.night_flows import nightly

        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        state = nightly(**parameters, return_state=True)
        assert state.is_failed()
        assert state.message.startswith(sentence)

    def test_parameter_types_are_validated(self, site: Store) -> None:
        from prefect.exceptions import ParameterTypeError

        from iosig.flows.night_flows import nightly

        with pytest.raises(ParameterTypeError, match="since"):
            nightly(since="yesterday")

    def test_machine_faults_are_retried_and_usage_errors_are_not(
        self, site: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from iosig.flows import tasks
        from iosig.flows.night_flows import nightly

        tries = []

        def unsteady(*_: object) -> list[Arrival]:
            tries.append(1)
            if len(tries) < 3:
                raise MachineFault("the disk is away")
            raise UsageError("and now a fault of ours")

        (site.root / "iosig.toml").write_text("[schedule]\nretry_delay_s = 0\nretry_count = 5\n")
        monkeypatch.setattr(tasks, "land_new", unsteady)
        state = nightly(return_state=True)
        assert (state.is_failed(), state.message, len(tries)) == (True, "and now a fault of ours", 3)

    @pytest.mark.long
    def test_step_that_exceeds_its_timeout_fails(
        self, site: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from iosig.flows.night_flows import nightly

        (site.root / "iosig.toml").write_text("[schedule]\nstep_timeout_s = 0.5\nretry_delay_s = 0\n")
        monkeypatch.setattr(order, "STEPS", (Step("slow", sleep, (), ()),))
        began = time.monotonic()
        state = nightly(return_state=True)
        assert state.is_failed()
        assert time.monotonic() - began < 15

    @pytest.mark.long
    def test_night_waits_for_the_lock_and_names_its_holder(self, site: Store) -> None:
        from iosig.flows.night_flows import nightly

        with lock_warehouse(site):
            state = nightly(lock_timeout_s=0.0, return_state=True)
        assert state.is_failed()
        assert f"Another run is writing to {site.root} (process {os.getpid()} on" in state.message


# ---- deployments


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_all_flows_are_deployed_without_replacing_other_warehouses(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    from iosig.flows.deployments import FLOWS, deploy, free_names

    one, other = Store(tmp_path / "a" / "spider"), Store(tmp_path / "b" / "spider")
    schedule = Settings.model_validate({"schedule": {"land_cron": "0 * * * *"}}).schedule
    with get_client(sync_client=True) as client:
        with pytest.raises(UsageError, match=r"No work pool iosig .*prefect work-pool create"):
            deploy(one, schedule, "iosig", free_names(one, None))
        client.create_work_pool(WorkPoolCreate(name="iosig", type="process"))
        names = free_names(one, None)
        assert names == {key: f"{key}-spider" for key in ("nightly", "land", "backfill", "maintain", "report")}
        for _ in range(2):
            deploy(one, schedule, "iosig", free_names(one, None))
        with pytest.raises(UsageError, match=f"iosig-nightly/nightly-spider belongs to another warehouse .{one.root}"):
            free_names(other, None)
        deploy(other, schedule, "iosig", free_names(other, "b"))
        assert len(client.read_deployments()) == 2 * len(FLOWS)
        found = {key: client.read_deployment_by_name(f"iosig-{key}/{name}") for key, name in names.items()}
        others = [client.read_deployment_by_name(f"iosig-{key}/b") for key in FLOWS]
    assert {known.job_variables["env"]["IOSIG_WAREHOUSE"] for known in others} == {str(other.root)}
    assert {known.job_variables["env"]["IOSIG_WAREHOUSE"] for known in found.values()} == {str(one.root)}
    crons = {key: [schedule.schedule.cron for schedule in known.schedules] for key, known in found.items()}
    assert crons == {"nightly": ["30 2 * * *"], "land": ["0 * * * *"], "backfill": [], "maintain": [], "report": []}
    for key, known in found.items():
        assert known.parameters == {}, "a run's parameters name no warehouse"
        module = "night_flows" if key in ("nightly", "backfill") else "upkeep_flows"
        assert known.entrypoint == f"iosig.flows.{module}.{key}"
        assert known.enforce_parameter_schema
    properties = {key: known.parameter_openapi_schema["properties"] for key, known in found.items()}
    assert {key: sorted(own) for key, own in properties.items()} == {
        "nightly": ["exclude", "lock_timeout_s", "select", "since", "until"],
        "land": [],
        "backfill": ["chunk_days", "lock_timeout_s", "since", "until"],
        "maintain": ["lock_timeout_s"],
        "report": ["release"],
    }
    assert all(one.get("description") for own in properties.values() for one in own.values()), "the form explains them"
    assert {"type": "string", "format": "date"} in properties["nightly"]["since"]["anyOf"]
    assert (properties["backfill"]["since"]["format"], properties["backfill"]["chunk_days"]["minimum"]) == ("date", 1)


@pytest.mark.slow
def test_entry_point_of_earlier_deployments_finds_the_flow() -> None:
    from iosig.flows import deployments
    from iosig.flows.night_flows import nightly

    assert deployments.nightly is nightly, "their entry point is iosig.flows.deployments.nightly"


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "quick_checks")
def test_other_flows_match_their_commands(site: Store, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from iosig.flows.night_flows import backfill, nightly
    from iosig.flows.upkeep_flows import land, maintain, report

    refused = report(return_state=True)
    assert (refused.is_failed(), refused.message.startswith("No release exists")) == (True, True)
    inbox, pages = tmp_path / "inbox", tmp_path / "pages"
    inbox.mkdir()
    polls = "polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n2026-03-03T00:10:00Z,c9,10,5000000,0\n"
    (inbox / "late.csv").write_text(polls)
    (site.root / "iosig.toml").write_text(f'[schedule]\ninbox = "{inbox}"\n[report]\noutput = "{pages}"\n')
    assert (land(), land()) == (1, 0)
    made = backfill("2026-03-02", "2026-03-03", chunk_days=2)
    assert [(release.release_id, release.kind) for release in releases.history(site)] == [(made[0], "backfill")]
    assert (pages / "latest/index.html").is_file()
    (pages / "latest/index.html").unlink()
    assert report(made[-1]) == str(pages / "latest/index.html")
    assert (pages / "latest/index.html").is_file()
    maintain()
    selected = nightly(select=["rejects"], return_state=True)
    assert (selected.is_completed(), selected.result()) == (True, None), "the table is as it was"
    assert nightly(select=["rejcts"], return_state=True).message.endswith(
        "Did you mean rejects? `iosig lineage` lists them."
    )
    with get_client(sync_client=True) as client:
        tasks = {run.name for run in client.read_task_runs(limit=200)}
        flows = {run.name for run in client.read_flow_runs(limit=200)}
    assert {"land", "plan", "release", "maintain", "report", "stage polls 2026-03-02"} <= tasks
    assert {"2026-03-02 to 2026-03-03", f"backfill-{site.root.name}", f"land-{site.root.name}"} <= flows
