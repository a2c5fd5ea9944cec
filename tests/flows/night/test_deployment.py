"""The nightly flow under Prefect: the same release as inline, with an artifact; one test server a session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flows.night import order
from flows.settings import Settings
from warehouse.releases import publishing, releases
from warehouse.store.store import Store

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def prefect_server() -> Iterator[None]:
    from prefect.settings import PREFECT_SERVER_ANALYTICS_ENABLED, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    # The server would ask the network to tell that it runs.
    with temporary_settings({PREFECT_SERVER_ANALYTICS_ENABLED: False}), prefect_test_harness(120):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "quick_checks")
def test_the_flow_makes_the_release_that_inline_makes(site: Store, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    from flows.night.deployment import nightly

    shutil.copytree(site.root, tmp_path / "inline")
    inline = order.run_inline(Store(tmp_path / "inline"), Settings(), lambda *_: None)
    release = nightly(str(site.root))
    assert release.release_id == inline.release_id
    assert nightly(str(site.root)) is None, "there is nothing new"
    assert releases.history(site) == [release]
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=["iosig-release"])))
        runs = {run.name: run.state_name for run in client.read_task_runs()}
    assert release.release_id in found[0].description
    assert '"job_io"' in found[0].data
    assert {"stage polls", "stage jobs", "samples", "classes", "checks"} <= runs.keys()


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "quick_checks")
@pytest.mark.long
def test_work_that_is_done_is_not_done_again(
    site: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from prefect.client.orchestration import get_client

    from flows.night import deployment as nightly

    def unpublished(*_: object) -> None:
        raise ConnectionError("the server went away")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "publish", unpublished)
        with pytest.raises(ConnectionError):
            nightly.nightly(str(site.root))
    assert releases.current(site) is None
    release = nightly.nightly(str(site.root))
    assert releases.history(site) == [release]
    with get_client(sync_client=True) as client:
        states = [run.state_name for run in client.read_task_runs() if run.name == "stage polls"]
    assert "Cached" in states


def test_the_deployment_points_to_the_flow() -> None:
    document = yaml.safe_load((Path(__file__).parents[3] / "prefect.yaml").read_text())
    (deployment,) = document["deployments"]
    assert deployment["entrypoint"] == "flows/night/deployment.py:nightly"
    assert deployment["schedules"][0]["cron"] == Settings().schedule.cron
    assert deployment["concurrency_limit"] == 1
