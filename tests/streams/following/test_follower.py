"""A follower's evaluations depend on content alone and happen once, even if the process is killed."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from iosig.estimates.periods import get_params
from iosig.settings.periods import PeriodSettings
from iosig.streams.following.followed import FollowedInput
from iosig.streams.following.follower import Follower
from iosig.streams.following.rows import Identity, Row
from iosig.transforms.periods.search import PeriodParams
from iosig.transforms.predictions.predictor import OnlineParams
from iosig.warehouse.contracts.predictions import PREDICTIONS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.following.flushes import Flush, Moves
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.store.journal import Journal
from tests.online_runs import changing

PHASES_PARAMETERS = {"phases": {"agreeing_gap_count": 2}}
Kept = dict[tuple[str, str, int], Row]


@dataclass
class FakeFeed:
    """Returns queued flushes in batches of given sizes."""

    flushes: Sequence[Flush]
    sizes: Sequence[int] = ()
    at: int = 0
    reading: int = 0
    is_finished: bool = False
    fault: InputRefused | None = None
    failed_count: int = 0
    is_quiet: bool = True
    waiting: list[Flush] = field(default_factory=list)

    @property
    def is_behind(self) -> bool:
        return self.at < len(self.flushes)

    def poll(self) -> list[Flush]:
        if self.fault is not None:
            raise self.fault
        size = self.sizes[self.reading % len(self.sizes)] if self.sizes else len(self.flushes)
        self.reading += 1
        found = list(self.flushes[self.at : self.at + size])
        self.at += len(found)
        return found

    def pending(self) -> list[Flush]:
        found, self.waiting = self.waiting, []
        return found

    def finish(self) -> list[Flush]:
        self.is_finished = True
        return [Flush({}, float("nan"), {"at": self.at}, events=("end",))]


def flushes_of(seed: int = 1, counts: tuple[int, int] = (6, 6), direction: str = "write") -> list[Flush]:
    run = changing(seed, 10.0, 2.0, counts)
    found = []
    for phase in range(run.phase_count):
        began, ceased = run.start_s[phase], run.end_s[phase]
        moves = {direction: Moves(began, ceased, np.full(len(began), 1e6))}
        found.append(Flush(moves, float(ceased.max()), {"at": phase + 1}))
    return found


def identity(name: str = "run", source: str = "client") -> Identity:
    return Identity(f"/traces/{name}", "trace", None, name, None, source, is_shared_traffic=False)


def followed(flushes: Sequence[Flush], sizes: Sequence[int] = (), name: str = "run", **more) -> FollowedInput:
    return FollowedInput(identity(name), FakeFeed(flushes, sizes), OnlineParams(most_samples=256), **more)


@dataclass
class Told:
    rows: list[Row] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def follower(self, inputs: Sequence[FollowedInput], journal: Journal | None = None) -> Follower:
        return Follower(list(inputs), self.rows.extend, lambda name, _: self.refused.append(name), journal)


def finished(inputs: Sequence[FollowedInput]) -> list[Row]:
    told = Told()
    told.follower(inputs).finish()
    return told.rows


def ended(one: FollowedInput) -> list[Row]:
    told = Told()
    follower = told.follower([one])
    follower.idle_end_s = 0.0
    follower.follow(0.001, Stop())
    return told.rows


def keyed(rows: Sequence[Row]) -> dict[tuple[str, str, int], Row]:
    timeless = [{name: value for name, value in row.items() if "predicted" not in name} for row in rows]
    found = {(row["followed_id"], row["direction"], row["evaluation"]): row for row in timeless}
    assert len(found) == len(rows)
    return found


def test_rows_match_the_contract_of_predictions():
    one = followed(flushes_of())
    rows = ended(one)
    assert all(set(row) == set(PREDICTIONS.column_names) for row in rows)
    assert [row["evaluation"] for row in rows] == list(range(1, 14))
    assert [row["is_final"] for row in rows] == [False] * 12 + [True]
    assert rows[-1]["phase_state"] == "end"
    assert rows[-1]["events"] == "end"
    assert rows[-2]["next_burst_start_s"] is not None
    assert rows[-1]["next_burst_outcome"] == "ended"
    assert [name for name, value in rows[-1].items() if name.startswith("next_burst") and value is not None] == [
        "next_burst_outcome"
    ]
    assert [row["change"] for row in rows if row["change"]] == ["longer"]


@pytest.mark.parametrize("sizes", [(1,), (2, 1, 5), (12,)], ids=str)
def test_rows_depend_on_content_and_not_on_batching(sizes):
    assert keyed(finished([followed(flushes_of(), sizes)])) == keyed(finished([followed(flushes_of())]))


def test_inputs_followed_together_and_alone_give_equal_rows():
    alone = {}
    for seed in range(3):
        alone |= keyed(finished([followed(flushes_of(seed), name=f"run{seed}")]))
    together = keyed(finished([followed(flushes_of(seed), (seed + 1,), name=f"run{seed}") for seed in range(3)]))
    assert together == alone


# ---- restarts


def opened(journal: Journal, flushes: Sequence[Flush], size: int) -> FollowedInput:
    one = followed(flushes, (size,))
    journal.follow(one.identity.followed_id)
    state = journal.state(one.identity.followed_id)
    if state is not None:
        one.restore(state)
        one.feed.at = one.position["at"]
    return one


def test_restart_after_each_commit_neither_loses_nor_duplicates_rows(tmp_path: Path):
    expected = keyed(finished([followed(flushes_of())]))
    lines: list[Row] = []
    for number in range(7):
        with Journal(tmp_path / "j.sqlite") as journal:
            follower = Follower([opened(journal, flushes_of(), 2)], lines.extend, lambda *_: None, journal)
            follower._tell_again(follower.followed)
            if number < 6:
                follower.step()
    with Journal(tmp_path / "j.sqlite") as journal:
        frame, _ = journal.rows_after(0, 1000)
    kept = {(row["followed_id"], row["direction"], row["evaluation"]): row for row in frame.to_dicts()}
    assert len(kept) == len(frame) == 12
    assert keyed(frame.to_dicts()) == expected
    for row in lines:
        assert row == kept[row["followed_id"], row["direction"], row["evaluation"]]
    assert {row["evaluation"] for row in lines} == set(range(1, 13))


def test_committed_rows_that_were_not_reported_are_reported_again(tmp_path: Path):
    def dies(rows: list[Row]) -> None:
        raise KeyboardInterrupt

    with Journal(tmp_path / "j.sqlite") as journal:
        with pytest.raises(KeyboardInterrupt):
            Follower([opened(journal, flushes_of(), 3)], dies, lambda *_: None, journal).step()
        committed = journal.rows_after(0, 100)[0].to_dicts()
    assert len(committed) == 3
    told = Told()
    with Journal(tmp_path / "j.sqlite") as journal:
        one = opened(journal, [], 3)
        one.feed.flushes = flushes_of()[:3]
        told.follower([one], journal).follow(0.01, _stopping())
    assert told.rows == committed


def test_both_directions_resume_in_any_order_of_appearance(tmp_path: Path):
    """The state's predictors are restored by name, not in the order in which directions first appeared."""
    flushes = flushes_of()
    reads = {"read": flushes[0].moves["write"]}
    mixed = [replace(one, moves=one.moves | (reads if place > 1 else {})) for place, one in enumerate(flushes)]
    expected = keyed(finished([followed(mixed)]))
    rows: list[Row] = []
    for _ in range(3):
        with Journal(tmp_path / "j.sqlite") as journal:
            Follower([opened(journal, mixed, 4)], rows.extend, lambda *_: None, journal).step()
    assert keyed(rows) == expected
    order = [(row["evaluation"], row["direction"]) for row in rows]
    assert order == [(row["evaluation"], row["direction"]) for row in finished([followed(mixed)])]


def test_rows_are_not_repeated_after_a_clean_end(tmp_path: Path):
    told = Told()
    for _ in range(2):
        with Journal(tmp_path / "j.sqlite") as journal:
            told.follower([opened(journal, flushes_of()[:3], 3)], journal).follow(0.01, _stopping())
    assert [row["evaluation"] for row in told.rows] == [1, 2, 3]


def test_long_backlog_is_committed_in_batches_and_interrupted_by_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("iosig.streams.following.follower._COMMIT_S", 1e-9)
    stop, commits = Stop(), []

    def tell(rows: list[Row]) -> None:
        commits.append([row["evaluation"] for row in rows])
        if len(commits) == 5:
            stop.set()

    with Journal(tmp_path / "j.sqlite") as journal:
        Follower([opened(journal, flushes_of(), 12)], tell, lambda *_: None, journal).follow(0.01, stop)
    assert commits == [[number] for number in range(1, 6)]
    told = Told()
    with Journal(tmp_path / "j.sqlite") as journal:
        one = opened(journal, flushes_of(), 12)
        assert (one.position["at"], one.told) == (5, {"write": 5})
        told.follower([one], journal).step()
    assert [row["evaluation"] for row in told.rows] == list(range(6, 13))


def test_finished_run_can_resume(tmp_path: Path):
    flushes = flushes_of()
    with Journal(tmp_path / "j.sqlite") as journal:
        told = Told()
        follower = told.follower([opened(journal, flushes[:6], 6)], journal)
        follower.idle_end_s = 0.0
        follower.follow(0.001, Stop())
        assert told.rows[-1]["is_final"]
        # another process may take a finished run
        with Journal(tmp_path / "j.sqlite") as other:
            other.follow("/traces/run")
        one = opened(journal, flushes, 6)
        one.feed.at = 6
        again = Told()
        again.follower([one], journal).step()
    assert [row["events"] for row in again.rows] == ["resumed"] + [""] * 5
    assert [row["evaluation"] for row in again.rows] == list(range(8, 14))
    assert again.rows[-1]["volume_bytes"] == finished([followed(flushes)])[-1]["volume_bytes"]
    assert not one.is_over


def test_refused_content_is_noted_with_reasons():
    flushes = flushes_of()[:2]
    bad = Flush({}, float("nan"), {"at": 3}, events=("refused",), refused=((3, "It is not a number."),))
    noted: list[tuple[str, object]] = []
    one = followed([*flushes, bad])
    Follower([one], lambda _: None, lambda *_: None, note=lambda *each: noted.append(each)).finish()
    assert noted == [("/traces/run", ((3, "It is not a number."),))]


def _stopping() -> Stop:
    stop = Stop()
    threading.Timer(0.2, stop.set).start()
    return stop


def test_state_without_parameters_of_the_method_is_restored(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        Told().follower([opened(journal, flushes_of(), 12)], journal).step()
        state = journal.state("/traces/run")
        assert state is not None
        params = {name: value for name, value in state.position["params"].items() if name != "detection"}
        again = followed(flushes_of())
        again.restore(replace(state, position={**state.position, "params": params}))
    assert again.told == state.position["told"]


def test_rows_have_the_parameters_of_their_method():
    detection = get_params(PeriodSettings(z_score=2.5), ("dft",))
    params = OnlineParams(method="dft", most_samples=256, detection=detection)
    told = Told()
    told.follower([FollowedInput(identity(), FakeFeed(flushes_of()), params)], None).step()
    values = {row["method"]: json.loads(row["method_parameters"]) for row in told.rows}
    assert values["dft"]["dft"]["outliers"]["z_threshold"] == 2.5
    assert values.get("phases", PHASES_PARAMETERS) == PHASES_PARAMETERS
    told.follower([followed(flushes_of())], None).step()
    assert told.rows[-1]["method_parameters"] is None


def test_state_of_other_parameters_is_refused_and_reset_keeps_counting(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        told = Told()
        told.follower([opened(journal, flushes_of(), 12)], journal).step()
        state = journal.state("/traces/run")
        assert state is not None
        other = FollowedInput(identity(), FakeFeed(flushes_of()), OnlineParams(most_samples=1024))
        detection = OnlineParams(most_samples=256, detection=PeriodParams(max_missing_ratio=0.2))
        for each in (other, FollowedInput(identity(), FakeFeed(flushes_of()), detection)):
            with pytest.raises(UsageError, match="other parameters"):
                each.restore(state)
        other.count_on(state)
        told.follower([other], journal).step()
    again = told.rows[12:]
    assert [row["evaluation"] for row in again] == list(range(13, 25))
    assert other.told == {"write": 24}
    assert {row["run_number"] for row in again} == {2}


# ---- irregular inputs


def shifted(flush: Flush, by_s: float, *events: str) -> Flush:
    moves = {
        name: Moves(each.start_s + by_s, each.end_s + by_s, each.volume_bytes) for name, each in flush.moves.items()
    }
    return replace(flush, moves=moves, until_s=flush.until_s + by_s, events=events)


def test_clock_that_goes_back_starts_another_run():
    flushes = flushes_of()
    rows = finished([followed([*flushes, *flushes[:3]])])
    assert [row["run_number"] for row in rows] == [1] * 12 + [2] * 3
    assert rows[12]["events"] == "clock_back"
    assert rows[12]["volume_bytes"] == flushes[0].moves["write"].volume_bytes.sum()
    assert [row["evaluation"] for row in rows] == list(range(1, 16))


def test_replaced_file_starts_another_run_and_rotated_file_does_not():
    flushes = flushes_of()
    other = [*flushes[:4], replace(flushes[3], events=("replaced",))]
    assert finished([followed(other)])[4]["run_number"] == 2
    same = [*flushes[:4], replace(flushes[4], events=("rotated",))]
    row = finished([followed(same)])[4]
    assert (row["run_number"], row["events"]) == (1, "rotated")


def test_clock_jump_within_a_run_resets_the_window():
    flushes = flushes_of()
    one = followed([])
    for flush in flushes[:4]:
        (ready,) = one.take(flush)
    (ready,) = one.take(shifted(flushes[4], 1e6), elapsed_s=10.0)
    assert ready.told.events == ("clock_jump",)
    assert ready.told.run_number == 1
    assert ready.due.predictor.window_start_s(ready.due.now_s) >= 1e6
    (ready,) = one.take(shifted(flushes[5], 1e6 + 50.0), elapsed_s=10.0)
    assert ready.told.events == ()


def test_extreme_times_are_refused_and_the_rest_is_counted():
    flushes = flushes_of()
    bad = Moves(np.array([1e300, 50.0]), np.array([1e300, 51.0]), np.array([5.0, 7.0]))
    rows = finished([followed([*flushes[:2], Flush({"write": bad}, 1e300, {"at": 3})])])
    assert rows[2]["events"] == "refused"
    assert rows[2]["window_end_s"] < 60
    assert rows[2]["volume_bytes"] == 2 * 4e6 + 7


def test_refused_input_does_not_affect_others():
    bad = followed(flushes_of(), name="bad")
    bad.feed.fault = InputRefused("It is damaged.", "Fetch it again.")
    told = Told()
    told.follower([bad, followed(flushes_of(), name="good")]).finish()
    assert told.refused == ["/traces/bad"]
    assert {row["subject_id"] for row in told.rows} == {"good"}


def test_only_the_requested_direction_is_evaluated():
    both = [
        replace(flush, moves={"write": flush.moves["write"], "read": flush.moves["write"]}) for flush in flushes_of()
    ]
    assert {row["direction"] for row in finished([followed(both)])} == {"read", "write"}
    assert {row["direction"] for row in finished([followed(both, direction="read")])} == {"read"}


def test_evaluations_keep_a_minimum_spacing():
    rows = finished([followed(flushes_of(), spacing_s=25.0)])
    assert all(np.diff([row["window_end_s"] for row in rows]) > 24.5)
    assert 3 < len(rows) < 12


def test_polls_use_their_interval_and_mark_gaps():
    edges = 2.0 * np.arange(400)
    rates = np.where((np.arange(400) % 20) < 4, 1e9, 1e6)
    flushes = []
    for start in range(0, 400, 10):
        if start in (200, 210, 220, 230):
            continue
        span = slice(start, start + 10)
        moves = {"write": Moves(edges[span], edges[span] + 2, 2 * rates[span])}
        measured = np.stack([edges[span], edges[span] + 2], axis=1)
        events = ("gap",) if start == 240 else ()
        flushes.append(Flush(moves, float(edges[span][-1] + 2), {"at": start}, measured, events))
    one = FollowedInput(identity(source="server"), FakeFeed(flushes), OnlineParams(observed="predictions"))
    rows = finished([one])
    assert rows[0]["sampling_hz"] == 0.5
    assert [row["phase_state"] for row in rows if "gap" in row["events"]] == ["gap"]
    assert rows[-1]["period_s"] == pytest.approx(40.0, rel=0.02)
    state = one.state()
    again = FollowedInput(identity(source="server"), FakeFeed([]), OnlineParams(observed="predictions"))
    again.restore(state)
    assert again.params.finest_s == 2.0


def test_batched_polls_keep_the_interval_of_each_poll():
    edges = 2.0 * np.arange(60)
    moves = {"write": Moves(edges, edges + 2, np.full(60, 1e6))}
    flush = Flush(moves, 120.0, {}, np.array([[0.0, 120.0]]))
    one = FollowedInput(identity(source="server"), FakeFeed([flush]), OnlineParams(observed="predictions"))
    assert finished([one])[0]["sampling_hz"] == 0.5


def test_idle_run_is_finished_after_the_timeout():
    one = followed(flushes_of()[:3])
    told = Told()
    follower = told.follower([one])
    follower.idle_end_s = 0.05
    follower.follow(0.02, Stop())
    assert one.is_over
    assert told.rows[-1]["is_final"]


def test_incomplete_data_are_delivered_once_the_input_is_idle():
    flushes = flushes_of()[:2]
    one = followed(flushes[:1])
    one.feed.waiting = flushes[1:]
    told = Told()
    follower = told.follower([one])
    stop = Stop()
    threading.Timer(1.5, stop.set).start()
    follower.follow(0.05, stop)
    assert [row["evaluation"] for row in told.rows] == [1, 2]


def test_failing_input_is_reported_once_and_retried():
    one = followed(flushes_of()[:2])
    one.feed.fault = InputRefused("It is damaged.", "Fetch it again.")
    told = Told()
    follower = told.follower([one])
    assert not follower.step()
    assert not follower.step()
    assert told.refused == ["/traces/run"]
    assert follower.followed == [one]
