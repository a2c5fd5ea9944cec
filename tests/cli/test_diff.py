"""`iosig diff` lists signatures that differ between two releases, and by how much."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from iosig.answers.signatures.changes import SCHEMA, signature_changes
from iosig.warehouse.releases.releases import find
from iosig.warehouse.store.store import Store
from tests.flows.signature_releases import Made, publish
from tests.nights import Cli

SAME, MOVED, LOUDER = Made("ana/same/4"), Made("ana/moved/4"), Made("ana/louder/4", bursts=((60, 90, 2e9),))
LOST, HOSTILE = Made("ana/lost/4", direction="read"), Made("o'x/'); drop table signatures; --/8")
OLD, NEW = "2018-02-09-old", "2018-02-09-new"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("changed") / "warehouse")
    few = Made("ana/few/4", outcome="too_few_samples", run_count=3)
    publish(made, "old", [SAME, MOVED, LOUDER, LOST, HOSTILE, few, replace(few, application_id="ana/never/4")])
    publish(
        made,
        "new",
        [
            replace(SAME, run_count=9),
            # its second burst has moved
            replace(MOVED, bursts=((60, 90, 2e9), (240, 280, 1e9))),
            replace(LOUDER, bursts=((60, 90, 2.5e9),)),
            replace(LOST, outcome="no_common_bursts"),
            Made("ana/few/4"),
            replace(few, application_id="ana/never/4"),
            replace(HOSTILE, method="iosi"),
            replace(SAME, method="mean", is_default=False, bursts=((1, 2, 1.0),)),
        ],
    )
    return made


@pytest.fixture(scope="module")
def changes(store: Store) -> dict[str, dict[str, object]]:
    found = signature_changes(store, find(store, OLD), find(store, NEW))
    assert dict(found.schema) == SCHEMA
    return {row["application_id"]: row for row in found.iter_rows(named=True)}


def test_unchanged_signatures_are_omitted_and_largest_change_is_first(changes: dict[str, object]) -> None:
    assert list(changes) == ["ana/moved/4", "ana/louder/4", HOSTILE.application_id, "ana/lost/4", "ana/few/4"]


def test_moved_burst_counts_as_removed_and_added(changes: dict[str, dict[str, object]]) -> None:
    row = changes["ana/moved/4"]
    assert (row["status"], row["method_before"], row["method"]) == ("changed", "robust", "robust")
    assert (row["added_burst_count"], row["removed_burst_count"]) == (1, 1)
    assert (row["added_peak_s"], row["removed_peak_s"]) == ([260.0], [200.0])
    assert row["relative_volume_change"] == pytest.approx(0.0)
    # 30 s of 2 and 40 s of 1 in 300 s: the covariance lacks the 40 s of 1
    mean, squares = 100 / 300, 160 / 300
    assert row["change_correlation"] == pytest.approx((120 / 300 - mean**2) / (squares - mean**2))


def test_scaled_signature_has_correlation_1_and_a_volume_change(changes: dict[str, dict[str, object]]) -> None:
    row = changes["ana/louder/4"]
    assert row["change_correlation"] == pytest.approx(1.0)
    assert row["relative_volume_change"] == pytest.approx(0.25)
    assert (row["volume_bytes_before"], row["volume_bytes"]) == (6e10, 7.5e10)
    assert (row["added_burst_count"], row["removed_burst_count"]) == (0, 0)
    assert row["change_ratio"] == pytest.approx(0.25)


def test_signature_in_one_release_only_is_new_or_gone(changes: dict[str, dict[str, object]]) -> None:
    lost, few = changes["ana/lost/4"], changes["ana/few/4"]
    assert (lost["status"], lost["outcome"], lost["volume_bytes"]) == ("gone", "no_common_bursts", None)
    assert (few["status"], few["outcome_before"], few["volume_bytes_before"]) == ("new", "too_few_samples", None)
    assert lost["change_correlation"] is few["change_correlation"] is None


def test_changed_default_method_is_a_change(changes: dict[str, dict[str, object]]) -> None:
    row = changes[HOSTILE.application_id]
    assert (row["status"], row["method_before"], row["method"]) == ("changed", "robust", "iosi")
    assert row["change_ratio"] == pytest.approx(0.0)


def test_comparison_can_be_limited_to_one_method(store: Store) -> None:
    found = signature_changes(store, find(store, OLD), find(store, NEW), "mean")
    assert found.select("application_id", "status").rows() == [("ana/same/4", "new")]
    assert signature_changes(store, find(store, NEW), find(store, OLD), "mean")["status"].to_list() == ["gone"]


def test_release_does_not_differ_from_itself(store: Store, cli: Cli) -> None:
    one = find(store, NEW)
    assert signature_changes(store, one, one).is_empty()
    assert cli("--warehouse", store.root, "diff", NEW, NEW)[1] == "The two releases are identical.\n"


def test_command_prints_a_table_of_changes(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "diff", OLD, NEW)
    assert code == 0
    told = out[out.index("Signatures that differ") :]
    lines = {line.split()[0]: line for line in told.splitlines() if "ana/" in line}
    assert "0.684" in lines["ana/moved/4"]
    assert lines["ana/louder/4"].split("robust")[1].split() == [
        "changed", "1.000", "60", "GB", "→", "75", "GB", "+25.0%", "0", "0",
    ]  # fmt: skip
    assert "gone" in lines["ana/lost/4"]
    assert "robust → iosi" in told
    assert "drop table signatures; --/8" in told


def test_command_reports_when_no_signature_differs(store: Store, cli: Cli) -> None:
    out = cli("--warehouse", store.root, "diff", OLD, NEW, "--method", "dtw")[1]
    assert out.endswith("No signature differs.\n")


def test_json_lists_tables_and_changes_of_signatures(store: Store, cli: Cli) -> None:
    document = json.loads(cli("--warehouse", store.root, "diff", OLD, NEW, "--json")[1])["tables"]
    told = {table["table"]: table for table in document}
    assert {"rows_before", "added", "removed", "changed"} <= told["signature_points"].keys()
    assert told["signatures"]["rows_before"] == 7
    assert [change["status"] for change in told["signatures"]["changes"]] == [*["changed"] * 3, "gone", "new"]
    assert [name for name, table in told.items() if "changes" in table] == ["signatures"]


def test_unknown_method_is_refused_with_known_methods(store: Store, cli: Cli) -> None:
    code, out, err = cli("--warehouse", store.root, "diff", OLD, NEW, "--method", "fft")
    assert (code, out) == (2, "")
    assert "Unknown signature method 'fft'. Available: elastic, robust, time_normalized, iosi" in err
