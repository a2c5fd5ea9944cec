"""Attribution after the last poll of a release uses landed polls and jobs, and the release's signatures."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from iosig.answers.attribution import query, slowdowns
from iosig.answers.attribution.landed import LandedTraffic, open_tables
from iosig.answers.attribution.query import Answer, Query, is_released
from iosig.answers.attribution.slowdowns import SlowdownAnswer
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.advised_sites import at, land_site, publish_site
from tests.nights import Cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Release]:
    """Polls before noon and the job log have landed; a release has signatures, and polls of nine o'clock."""
    root = tmp_path_factory.mktemp("landed")
    store = Store(root / "warehouse")
    land_site(store, root / "in")
    publish_site(store)
    return store, releases.find(store, None)


def who(site: tuple[Store, Release], asked: Query) -> Answer:
    with open_tables(*site, Settings(), asked, query.TABLES) as (connection, is_landed):
        return query.who(connection, asked, is_landed=is_landed)


def hurt(site: tuple[Store, Release], asked: Query) -> SlowdownAnswer:
    with open_tables(*site, Settings(), asked, slowdowns.TABLES) as (connection, is_landed):
        return slowdowns.find_slowdowns(connection, asked, is_landed=is_landed)


def test_recent_bursts_are_attributed_to_their_jobs(site: tuple[Store, Release]) -> None:
    told = who(site, Query("scratch", at(-20), None, ("write",)))
    assert told.is_landed
    assert told.until == at(0)
    moved = dict(told.jobs.select("job_id", "attributed_bytes").rows())
    # 503 wrote both of its bursts, 500 its first one so far, which begins with the step in which 503 ended: the written
    # bytes are exact, though signatures predict twice as much
    assert moved == pytest.approx({"503": 1e9 * 30 + 2e9 * 120, "500": 1e9 * 30}, rel=0.01)
    assert told.measured_bytes == pytest.approx(0.5e9 * 1200 + sum(moved.values()), rel=0.05)
    assert told.others["job_id"].to_list() == ["501"], "neither of another file system nor of later"


def test_slowdowns_include_landed_traffic(site: tuple[Store, Release]) -> None:
    told = hurt(site, Query("scratch", at(-20), None, ("write",)))
    # bursts of both runs were found, but few runs give no estimate of the slowdown under contention
    assert (told.is_landed, told.run_count, told.runs.height) == (True, 2, 0)


def test_partitions_determine_the_file_systems_of_jobs(site: tuple[Store, Release]) -> None:
    told = who(site, Query("projects", at(-2), at(0)))
    assert (told.jobs.height, told.others["job_id"].to_list()) == (0, ["502"])


def test_release_is_queried_first_and_landed_traffic_otherwise(site: tuple[Store, Release], cli: Cli) -> None:
    store, release = site
    nine = at(-180)
    assert is_released(store, release, Query("scratch", nine, None))
    assert not is_released(store, release, Query("scratch", nine + timedelta(seconds=90), None))
    assert not is_released(store, release, Query("nowhere", nine, None))
    code, out, _ = cli("--warehouse", store.root, "who", "scratch", "--since", "2018-02-09T11:40")
    assert code == 0
    assert "moved, as far as it has landed" in out
    code, _, err = cli("--warehouse", store.root, "who", "scratch", "--at", "2018-02-10T11:40")
    assert (code, "No polls of scratch from 2018-02-10" in err) == (0, True)


def test_time_without_polls_is_refused_with_available_times(site: tuple[Store, Release]) -> None:
    later = Query("scratch", at(600), None)
    with pytest.raises(NothingToDo, match="neither landed nor in a release"):
        LandedTraffic.read(*site, Settings(), later)
    for ask in (who, hurt):
        with pytest.raises(NothingToDo, match="scratch since 2018-02-09T22:00:00Z: the release has polls from"):
            ask(site, later)
        with pytest.raises(UsageError, match="no polls of file system 'nowhere'"):
            ask(site, Query("nowhere", at(-20), None))


def test_long_poll_intervals_are_spread_over_their_steps(tmp_path: Path) -> None:
    lines = ["polled_at,controller,filesystem,interval_s,read_bytes_per_s,write_bytes_per_s"]
    lines += [f"{at(0.5 * step):%FT%TZ},c0,lake,30,0,{1e6 * step}" for step in range(1, 9)]
    lines.append(f"{at(6):%FT%TZ},c0,lake,120,0,5e6")
    (tmp_path / "polls.csv").write_text("\n".join(lines) + "\n")
    store = Store(tmp_path / "warehouse")
    assert not any(
        one.has_refusals for one in land_paths(store, Settings(), [str(tmp_path / "polls.csv")], ReadOptions())
    )
    landed = LandedTraffic.read(store, None, Settings(), Query("lake", at(0), None, ("write",)))
    traffic = landed.laid[0].traffic
    assert traffic.volume_bytes.tolist() == [3e7 * step for step in range(1, 9)] + [1.5e8] * 4
