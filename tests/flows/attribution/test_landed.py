"""Who it was in a time that is in no release yet: landed polls and jobs, and the signatures of a release."""

from __future__ import annotations

from datetime import timedelta

import pytest

from iosig.flows.attribution.asking import Asked, is_released
from iosig.flows.attribution.landed import hurt_of_landed, who_of_landed
from iosig.flows.settings import Settings
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.advised_sites import at, land_site, publish_site
from tests.flows.conftest import Cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Release]:
    """Polls of half an hour before noon and the job log have landed; a release has signatures, and polls of nine."""
    root = tmp_path_factory.mktemp("landed")
    store = Store(root / "warehouse")
    land_site(store, root / "in")
    publish_site(store)
    return store, releases.find(store, None)


def test_bursts_of_the_last_half_hour_are_given_to_who_did_them(site: tuple[Store, Release]) -> None:
    told = who_of_landed(*site, Settings(), Asked("scratch", at(-20), None, ("write",)))
    assert told.is_landed
    assert told.until == at(0)
    moved = dict(told.jobs.select("job_id", "explained_bytes").rows())
    # 503 did both of its bursts, 500 the first one so far, which begins with the step in which 503 ended: to the byte
    # what was written, though signatures say twice as much
    assert moved == pytest.approx({"503": 1e9 * 30 + 2e9 * 120, "500": 1e9 * 30}, rel=0.01)
    assert told.measured_bytes == pytest.approx(0.5e9 * 1200 + sum(moved.values()), rel=0.05)
    assert told.others["job_id"].to_list() == ["501"], "neither of another file system nor of later"


def test_who_was_hurt_is_told_of_what_landed_too(site: tuple[Store, Release]) -> None:
    told = hurt_of_landed(*site, Settings(), Asked("scratch", at(-20), None, ("write",)))
    # both have bursts that were found; and of so few runs nobody knows what crowding makes of them
    assert (told.is_landed, told.run_count, told.runs.height) == (True, 2, 0)


def test_partitions_say_who_uses_which_file_system(site: tuple[Store, Release]) -> None:
    told = who_of_landed(*site, Settings(), Asked("projects", at(-2), at(0)))
    assert (told.jobs.height, told.others["job_id"].to_list()) == (0, ["502"])


def test_the_release_is_asked_first(site: tuple[Store, Release], cli: Cli) -> None:
    store, release = site
    nine = at(-180)
    assert is_released(store, release, Asked("scratch", nine, None))
    assert not is_released(store, release, Asked("scratch", nine + timedelta(seconds=90), None))
    assert not is_released(store, release, Asked("nowhere", nine, None))
    code, out, _ = cli("--warehouse", store.root, "who", "scratch", "--since", "2018-02-09T11:40")
    assert code == 0
    assert "moved, as far as it has landed" in out
    code, _, err = cli("--warehouse", store.root, "who", "scratch", "--at", "2018-02-10T11:40")
    assert (code, "No polls of scratch from 2018-02-10" in err) == (0, True)


def test_nothing_has_landed_of_some_times(site: tuple[Store, Release]) -> None:
    for asked in (Asked("scratch", at(600), None), Asked("nowhere", at(-20), None)):
        with pytest.raises(NothingToDo, match="have landed"):
            who_of_landed(*site, Settings(), asked)
