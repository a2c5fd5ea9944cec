"""The wall's figures show numbers of a release, compared with values computed by hand from small tables."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest

from iosig.answers.wall import checkpoint_clock, population_map, release_changes, storage_calendar
from iosig.warehouse.errors import NothingToDo, UsageError
from tests.warehouse.releasing import Content, opened_tables

_TICKS: dict[str, Content] = {
    "filesystem_rates": {
        9: """
            filesystem polled_at interval_s read_bytes written_bytes
            lake       10:00:30  30         60         300
            lake       10:01:00  30         .          900
            lake       10:04:00  120        240        0
            lake       10T00:00:00 60       1          1
            lake       11T00:00:00 60       1          1
            pond       10:01:00  60         7          8
            """
    }
}


def test_rate_of_a_minute_refers_to_its_polled_time() -> None:
    with opened_tables(_TICKS) as connection:
        view = storage_calendar.build_view(connection, "lake")
    assert (view.filesystem, list(view.days)) == ("lake", [date(2018, 2, 9)])
    write, read = (one.bytes_per_s[0] for one in view.rates)
    # 300 and 900 B in 30 s each; a poll of two minutes covers both
    assert write[600:604].tolist() == pytest.approx([20.0, math.nan, 0.0, 0.0], nan_ok=True)
    assert read[600:604].tolist() == pytest.approx([2.0, math.nan, 2.0, 2.0], nan_ok=True)
    assert np.isfinite(write).sum() == 4
    # half of the first minute was polled for reads: its rate is known, and its bytes are the bytes of that half
    assert view.moved_bytes == pytest.approx(300 + 900 + 60 + 240 + 2)


def test_days_without_polls_are_gaps_in_a_given_range() -> None:
    with opened_tables(_TICKS) as connection:
        view = storage_calendar.build_view(connection, "lake", date(2018, 2, 8), date(2018, 2, 9), ["write"])
        assert [int(np.isfinite(day).sum()) for day in view.rates[0].bytes_per_s] == [0, 4]
        assert storage_calendar.build_view(connection).filesystem == "lake", "it moved most"
        with pytest.raises(UsageError, match="'sea', only of: lake, pond"):
            storage_calendar.build_view(connection, "sea")
        with pytest.raises(NothingToDo, match="its last day of polls is 2018-02-09"):
            storage_calendar.build_view(connection, "lake", date(2018, 3, 1), date(2018, 3, 2))


_SIGNED: dict[str, Content] = {
    "jobs": {
        9: """
            job_id user application node_count started_at ended_at is_application_run filesystem
            1      ann  ior         8          00:00:00   06:00:00 yes                .
            2      ann  ior         8          06:00:00   12:00:00 yes                lake
            3      ann  ior         8          06:00:00   12:00:00 yes                pond
            4      bob  s3d         4          06:00:00   18:00:00 yes                .
            5      bob  s3d         4          18:00:00   10T00:00:00 no                 .
            6      cat  x           1          18:00:00   10T00:00:00 yes                .
            """
    },
    "applications": {9: "application_id \n ann/ior/8 \n bob/s3d/4 \n cat/x/1"},
    "signatures": {
        9: """
            application_id filesystem direction is_default outcome   volume_bytes duration_s peak_bytes_per_s \
    burst_count
            ann/ior/8      lake       write     yes        extracted 1000         100        50               5
            ann/ior/8      lake       read      yes        extracted 100          100        2                1
            ann/ior/8      lake       write     no         extracted 9999         100        50               5
            bob/s3d/4      lake       write     yes        extracted 4000         400        20               3
            cat/x/1        lake       write     yes        no_io     .            .          .                .
            """
    },
    "classes": {
        9: """
            subject_kind subject_id filesystem direction label
            application  ann/ior/8  lake       write     END
            application  ann/ior/8  lake       read      START
            job          1          lake       write     HILL
            """
    },
    "periods": {
        9: """
            subject_kind subject_id filesystem direction is_default outcome   period_s bytes_per_period burst_width_s
            application  ann/ior/8  lake       write     yes        periodic  100      200              10
            application  bob/s3d/4  lake       write     yes        periodic  50       500              5
            application  ann/ior/8  lake       write     no         periodic  7        1                1
            application  ann/ior/8  lake       read      yes        periodic  9        1                1
            job          1          lake       write     yes        periodic  3        1                1
            """
    },
}


def test_monthly_bytes_are_bytes_per_run_times_runs() -> None:
    with opened_tables(_SIGNED) as connection:
        view = population_map.build_view(connection, "r")
    ann, bob = view.applications
    # one day of runs; two runs of ann may have been on the lake
    assert (view.day_count, view.unknown_count) == (1.0, 1)
    assert (ann.name, ann.month_bytes, ann.burstiness, ann.run_count, ann.label) == (
        "ann/ior/8", 30 * 2 * 1100, 50 / 10, 2, "END",
    )  # fmt: skip
    assert (bob.month_bytes, bob.burstiness, bob.run_count, bob.label) == (30 * 4000, 20 / 10, 1, None)


def test_expected_collisions_follow_burst_lengths_and_periods() -> None:
    with opened_tables(_SIGNED) as connection:
        view = checkpoint_clock.build_view(connection, "r")
    assert [(one.name, one.period_s, one.bytes_per_period) for one in view.rhythms] == [
        ("ann/ior/8", 100, 200), ("bob/s3d/4", 50, 500),
    ]  # fmt: skip
    (meeting,) = view.meetings
    # six hours of one run each of ann and bob on the lake; the run on the pond is excluded
    assert (meeting.first, meeting.second) == (0, 1)
    assert meeting.expected_count == pytest.approx(6 * 3600 * (10 + 5) / (100 * 50))
    assert view.silent_count == 0


def test_expected_collisions_match_a_simulation_of_random_phases() -> None:
    """Bursts of two clocks with random phases meet as often as predicted."""
    rng = np.random.default_rng(11)
    p, q, w, v, span = 97.0, 60.0, 6.0, 9.0, 20_000.0
    met = []
    for _ in range(200):
        one, other = (rng.uniform(0, each) + each * np.arange(int(span / each) + 2) for each in (p, q))
        one, other = one[one < span], other[other < span]
        met.append(int(((one[:, None] < other + v) & (other < one[:, None] + w)).sum()))
    assert np.mean(met) == pytest.approx(span * (w + v) / (p * q), rel=0.02)


def test_changes_include_new_and_removed_signatures() -> None:
    later = dict(_SIGNED)
    later["signatures"] = {
        9: """
            application_id filesystem direction is_default outcome   volume_bytes duration_s peak_bytes_per_s \
    burst_count
            ann/ior/8      lake       write     yes        extracted 3000         100        50               5
            new/app/1      lake       write     yes        extracted 10           100        50               1
            """
    }
    with opened_tables(_SIGNED) as before, opened_tables(later) as after:
        view = release_changes.build_view(before, after, ("a", "b"))
    told = {one.name: one for one in view.changes}
    assert set(told) == {"ann/ior/8 write", "ann/ior/8 read", "bob/s3d/4 write", "new/app/1 write"}
    ann = told["ann/ior/8 write"]
    assert [(one.before, one.after) for one in ann.quantities] == [(1000, 3000), (5, 5), (100, 100)]
    assert (told["new/app/1 write"].is_new, told["bob/s3d/4 write"].is_gone, ann.is_new) == (True, True, False)
    assert view.shown[0].name == "ann/ior/8 write", "what is in both comes first"
    assert view.signature_count == 4
    with opened_tables(_SIGNED) as before, opened_tables(_SIGNED) as after:
        same = release_changes.build_view(before, after, ("a", "b"))
    assert (same.shown, same.finding) == ([], "No change in 3 signatures")
