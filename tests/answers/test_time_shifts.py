"""Wrong time zones are detected in landed inputs and in a release."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from iosig.answers import time_shifts
from iosig.answers.time_shifts import check_landings, check_release
from iosig.flows.demo.simulated import write_site
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.transforms.synthetic.site import SiteParams, simulate
from iosig.warehouse.store.landing import Landing
from iosig.warehouse.store.store import Store
from tests.nights import run_night

SITE = SiteParams(seed=7, days=1, controller_count=1, interval_s=10.0, controller_bytes_per_s=1e10, fault_level=0.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_site(simulate(SITE), folder)
    return folder


def landed(store: Store, files: Path, zone: str) -> list[Landing]:
    arrivals = land_paths(store, Settings(), [str(files)], ReadOptions(time_zone=zone))
    return [arrival.landed.landing for arrival in arrivals if arrival.landed]


def test_correct_times_give_no_warning(tmp_path: Path, files: Path) -> None:
    store = Store(tmp_path)
    new = landed(store, files, "UTC")
    assert check_landings(store, Settings(), new) == []
    assert check_release(store, Settings(), run_night(store)) == []


@pytest.mark.parametrize(
    ("zone", "found"),
    [
        ("America/Los_Angeles", "look 8 hours late. Is their time zone UTC?"),
        pytest.param("Asia/Tokyo", "look 9 hours early. Is their time zone UTC?", marks=pytest.mark.long),
    ],
)
def test_wrong_time_zone_is_named_on_landing_and_release(tmp_path: Path, files: Path, zone: str, found: str) -> None:
    store = Store(tmp_path)
    new = landed(store, files, zone)
    sentence = f"widow1, 2026-03-02: the times of jobs, read as {zone}, {found}"
    (warning,) = check_landings(store, Settings(), new)
    assert warning.startswith(sentence)
    assert warning.endswith("Then land the file again with --replace --time-zone UTC.")
    (released,) = check_release(store, Settings(), run_night(store))
    assert released == warning


def test_jobs_of_another_file_system_are_not_compared(tmp_path: Path, files: Path) -> None:
    store = Store(tmp_path)
    new = landed(store, files, "Asia/Tokyo")
    assert check_landings(store, Settings(partitions={"batch": ["elsewhere"]}), new) == []


def test_only_days_with_new_inputs_are_checked(tmp_path: Path, files: Path) -> None:
    store = Store(tmp_path)
    landed(store, files, "Asia/Tokyo")
    assert check_landings(store, Settings(), []) == []


@pytest.mark.parametrize(
    ("offset_h", "day", "text"),
    [
        (0, date(2026, 3, 2), "UTC"),
        (-8, date(2026, 3, 2), "America/Los_Angeles (UTC-8)"),
        (-7, date(2026, 7, 2), "America/Los_Angeles (UTC-7)"),
        (1, date(2026, 3, 2), "Europe/Berlin (UTC+1)"),
        (2, date(2026, 7, 2), "Europe/Berlin (UTC+2)"),
        (-13, date(2026, 3, 2), "UTC-13"),
    ],
)
def test_time_zone_is_named_by_its_offset_on_the_day(offset_h: float, day: date, text: str) -> None:
    assert time_shifts._zone_text(offset_h, time_shifts._zone_with(offset_h, day)) == text


def test_several_days_give_one_warning() -> None:
    first = date(2026, 3, 2)
    zones = time_shifts._Zones("UTC", None)
    days = [first + timedelta(days=number) for number in range(3)]
    sentence = time_shifts._format_warning("scratch", days, 8, zones)
    assert sentence.startswith("scratch, 3 days from 2026-03-02 to 2026-03-04: the times of jobs, read as UTC, look 8")
    assert "America/Los_Angeles (UTC-8)" in sentence


def test_only_inputs_with_local_times_are_suspected() -> None:
    sentence = time_shifts._format_warning("scratch", [date(2026, 3, 2)], -8, time_shifts._Zones(None, "UTC"))
    assert "the times of polls, read as UTC, look 8 hours early. Is their time zone America/Los_Angeles" in sentence
