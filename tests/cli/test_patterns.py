"""`iosig patterns` prints patterns in 80 columns and as JSON, or reasons for their absence."""

from __future__ import annotations

import json

import pytest

from iosig.warehouse.store.store import Store
from tests.nights import Cli
from tests.warehouse.releasing import publish

pytestmark = pytest.mark.slow

_PATTERNS = """
filesystem direction pattern_id   outcome known_since_at first_occurrence_at last_occurrence_at occurrence_count \
    occurrence_bytes occurrence_duration_s period_s application_id covered_occurrence_count application_run_count \
    covering_run_count p_value
lake write aaaaaaaaaaaa unattributed 09:00:00 09:00:00 10:00:00 9 1e9 20 450 . . . . .
lake write bbbbbbbbbbbb attributed 09:00:00 09:30:00 12:00:00 9 1e12 20 . ann_the_long_name/ior_longer/1024 9 10 9 \
    0.00012
lake read . no_pattern . . . . . . . . . . . .
pond read . too_short . . . . . . . . . . . .
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("unknown") / "warehouse")
    publish(made, "unknown", {"unattributed_patterns": {None: _PATTERNS}})
    return made


def test_patterns_are_listed_with_likely_applications(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "patterns", "lake")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert ["aaaaaaaa", "write", "9", "450", "s", "1", "GB", "02-09", "10:00", "-"] in lines
    assert "bbbbbbbb: 9 of 9 occurrences in runs of ann_the_long_name/ior_longer/1024, seen in 9 of 10 runs" in out
    assert "read: no recurring pattern." in out
    firsts = [line[0] for line in lines if line and line[0] in ("aaaaaaaa", "bbbbbbbb")]
    assert firsts[:2] == ["bbbbbbbb", "aaaaaaaa"], "what moved most comes first"
    assert max(map(len, out.splitlines()[:6])) <= 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lake", "--since", "2018-02-09T11:00", "--direction", "write"), "bbbbbbbb"),
        (("lake", "--until", "2018-02-09T08:00", "--direction", "write"), "No pattern occurred in this time range."),
        (("pond",), "read: too few polls."),
    ],
)
def test_time_range_and_direction_filter_patterns(
    store: Store, cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    code, out, _ = cli("--warehouse", store.root, "patterns", *arguments)
    assert code == 0
    assert said in out
    assert "aaaaaaaa" not in out


def test_json_lists_patterns_and_reasons(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "patterns", "lake", "--json", "--top", 1)
    told = json.loads(out)
    assert (code, told["pattern_count"], told["without_patterns"]) == (0, 2, {"read": "no_pattern"})
    assert [(row["pattern_id"], row["first_occurrence_at"]) for row in told["patterns"]] == [
        ("bbbbbbbbbbbb", "2018-02-09T09:30:00Z")
    ]
