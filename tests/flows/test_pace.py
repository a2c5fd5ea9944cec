"""How long a night has to go, by its last one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.cli.printing import steps_told
from iosig.flows import pace
from iosig.flows.pace import Pace
from iosig.warehouse.store.store import Store

NAMES = ("stage", "signatures", "release")


class Clock:
    """A clock that stands still between steps."""

    now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s


def night(store: Store, day_count: int, taken_s: dict[str, float], clock: Clock) -> list[tuple[str, float | None]]:
    told: list[tuple[str, float | None]] = []
    one = Pace(store, NAMES, day_count, lambda name, left_s: told.append((name, left_s)))
    for name, seconds in taken_s.items():
        one.begin(name)
        clock.now_s += seconds
    one.keep()
    return told


def test_what_is_left_is_what_it_took_the_last_time_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    store = Store(tmp_path)
    assert night(store, 2, {"stage": 4.0, "signatures": 10.0, "release": 2.0}, clock) == [
        ("stage", None),
        ("signatures", None),
        ("release", None),
    ]
    # half of the days take half as long; a step with nothing to do is passed over
    assert night(store, 1, {"stage": 3.0, "release": 1.0}, clock) == [("stage", 8.0), ("release", 1.0)]
    assert json.loads((tmp_path / "pace.json").read_text()) == {"steps": {"release": 1.0, "stage": 3.0}}


@pytest.mark.parametrize("torn", ["{", "[]", '{"steps": {"stage": "long"}}'])
def test_a_torn_document_tells_nothing(torn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    (tmp_path / "pace.json").write_text(torn)
    assert night(Store(tmp_path), 1, {"stage": 1.0}, clock) == [("stage", None)]


def test_a_step_is_named_when_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with steps_told() as steps:
        steps.begin("signatures", 125.0)
        steps.begin("release", 1.0)
        steps.done("release", 47, 2.0)
    told = capsys.readouterr()
    assert told.out == "", "nothing but data goes there"
    first, second, third = told.err.splitlines()
    assert (first, second) == ("signatures ..., about 2 min left", "release ...")
    assert third.split() == ["release", "47", "rows", "2.0", "s"]
