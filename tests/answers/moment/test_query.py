"""The live view combines landed polls and jobs with a release's signatures, and reads them only once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iosig.answers.attribution.landed import LandedTraffic
from iosig.answers.moment.document import build_document
from iosig.answers.moment.query import MINUTES, LiveView
from iosig.settings.model import Settings
from iosig.warehouse.store.store import Store
from tests.flows.advised_sites import at, land_site, publish_site
from tests.nights import Night

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Polls of half an hour before noon and the job log have landed; no release exists."""
    root = tmp_path_factory.mktemp("moment")
    store = Store(root / "warehouse")
    land_site(store, root / "in")
    return store


@pytest.mark.long
def test_snapshot_shows_rates_jobs_next_bursts_and_outlook(
    landed: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(landed.root, tmp_path / "warehouse")
    store = Store(tmp_path / "warehouse")
    publish_site(store)
    live_view = LiveView(store, Settings())
    seen = live_view.take_snapshot(at(1))
    scratch = next(one for one in seen.filesystems if one.filesystem == "scratch")
    assert scratch.polled_at == at(0)
    written = scratch.bytes_per_s["write"]
    assert len(written) == MINUTES
    assert written[:30] == (None,) * 30
    assert written[-1] == pytest.approx(0.5e9)
    # 500 wrote for half of the minute that starts five minutes before noon
    assert written[-5] == pytest.approx(0.5e9 + 0.5e9)
    assert scratch.recent is not None
    assert scratch.recent.jobs["job_id"].to_list()[0] in ("500", "503")
    # 500 has run for 300 s; its burst is from 360 to 480 s
    assert [(one.job_id, one.starts_at) for one in scratch.bursts] == [("500", at(1))]
    assert scratch.bursts[0].expected_bytes == pytest.approx(4e9 * 120)
    assert scratch.outlook is not None
    assert (scratch.outlook.step_s, len(scratch.outlook.expected_bytes_per_s), scratch.no_outlook_reason) == (
        600,
        6,
        None,
    )
    # the burst, and the background
    assert scratch.outlook.expected_bytes_per_s[0] == pytest.approx(4e9 * 120 / 600 + 1e9, rel=0.2)
    told = build_document(seen)
    assert [one.filesystem for one in told.filesystems] == ["projects", "scratch"]
    assert told.sources[0].table == "job_records"
    monkeypatch.setattr(LandedTraffic, "read", None)
    assert live_view.take_snapshot(at(2)).filesystems is seen.filesystems, "nothing more has landed"


def test_rates_are_shown_without_a_release(landed: Store) -> None:
    seen = LiveView(landed, Settings()).take_snapshot(at(1))
    assert [one.filesystem for one in seen.filesystems] == ["projects", "scratch"]
    for one in seen.filesystems:
        assert (one.polled_at, one.bursts, one.no_outlook_reason) == (at(0), (), "No release exists yet.")
        assert one.recent is not None
        assert one.recent.jobs.is_empty()
        assert one.recent.unattributed_bytes == one.recent.measured_bytes > 0


def test_empty_warehouse_has_an_empty_snapshot(tmp_path: Path) -> None:
    seen = LiveView(Store(tmp_path), Settings()).take_snapshot(at(0))
    assert (seen.filesystems, seen.condition.sources) == ((), ())


def test_outlook_or_the_reason_for_its_absence_is_given(quick_night: Night) -> None:
    (one,) = LiveView(quick_night.store, Settings()).take_snapshot(at(0)).filesystems
    assert (one.outlook is None) == (one.no_outlook_reason is not None)
