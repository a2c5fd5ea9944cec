"""The demo compares default signatures with the true isolated I/O of its applications."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from iosig.cli.demo import _show_signatures, compare_signatures
from iosig.flows.demo.simulated import TrueSignature, signatures_truth
from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, Application, Burst
from iosig.warehouse.releases.releases import find
from iosig.warehouse.store.store import Store
from tests.flows.signature_releases import Made, publish

GB = 1e9
WRITER = Application("writer", "a/b", "p", 4, 300.0, (Burst(60, 60 * GB, 2 * GB), Burst(180, 40 * GB, 1 * GB)))
READER = Application("reader", "ana", "p", 4, 300.0, (Burst(10, 20 * GB, 2 * GB, "read"),))
ABSENT = Application("absent", "ana", "p", 4, 300.0, (Burst(10, 20 * GB, 2 * GB),))


@pytest.fixture(scope="module")
def site() -> Site:
    return simulate(SiteParams(days=0.05, controller_count=1), (WRITER, READER, ABSENT))


@pytest.fixture(scope="module")
def compared(site: Site, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    store = Store(tmp_path_factory.mktemp("found") / "warehouse")
    publish(
        store,
        "found",
        [
            Made("a%2Fb@titan/writer/4", bursts=((60, 96, 60 * GB / 36), (250, 260, 1 * GB))),
            Made("a%2Fb@titan/writer/4", method="iosi", is_default=False, bursts=((5, 6, 1.0),)),
            Made("a%2Fb@titan/writer/4", direction="read", outcome="no_io"),
            Made("ana@titan/reader/4", direction="read", outcome="too_few_samples"),
            Made("ana@titan/reader/4", bursts=((100, 110, 1 * GB),)),
            Made("else@titan/writer/4", bursts=((0, 9, 1 * GB),)),
        ],
    )
    return compare_signatures(store, find(store, None), signatures_truth(site))


def row(compared: pl.DataFrame, application: str, direction: str) -> dict[str, object]:
    return compared.row(
        by_predicate=(pl.col("application") == application) & (pl.col("direction") == direction), named=True
    )


# ---- ground truth


def test_truth_lists_bursts_per_application_and_direction(site: Site) -> None:
    found = {(true.application_id, true.direction): true for true in signatures_truth(site)}
    assert len(found) == 6
    writer = found["a%2Fb@titan/writer/4", "write"]
    assert writer.bytes_per_s.sum() == pytest.approx(100 * GB)
    assert writer.bursts.start_s.tolist() == [60.0, 180.0]
    assert writer.bursts.end_s.tolist() == pytest.approx([burst.end_s for burst in WRITER.bursts])
    assert writer.bursts.volume_bytes.tolist() == [60 * GB, 40 * GB]
    assert len(found["a%2Fb@titan/writer/4", "read"].bursts) == 0
    assert not found["a%2Fb@titan/writer/4", "read"].bytes_per_s.any()


def test_true_bursts_peak_with_the_curve() -> None:
    site = simulate(SiteParams(days=0.05, controller_count=1), APPLICATIONS)
    for true in signatures_truth(site):
        assert len(true.bursts) == sum(burst.direction == true.direction for burst in true.application.bursts)
        assert (true.bursts.start_s <= true.bursts.peak_s + 1).all()
        assert (true.bursts.peak_s <= true.bursts.end_s).all()
        tops = [burst.peak_bytes_per_s for burst in true.application.bursts if burst.direction == true.direction]
        assert np.allclose(true.bytes_per_s[true.bursts.peak_s.astype(int)], tops, rtol=0.05)


def test_truth_of_site_without_applications_is_empty() -> None:
    assert signatures_truth(simulate(SiteParams(days=0.05, controller_count=1), ())) == []


# ---- comparison with the truth


@pytest.mark.slow
def test_default_signature_is_compared_with_the_truth(compared: pl.DataFrame) -> None:
    found = row(compared, "writer", "write")
    assert (found["outcome"], found["method"]) == ("extracted", "robust")
    assert (found["burst_count"], found["true_burst_count"]) == (2, 2)
    assert (found["missed_burst_count"], found["false_burst_count"]) == (1, 1)
    assert (found["volume_bytes"], found["traced_bytes"]) == (pytest.approx(70 * GB), 100 * GB)
    assert 0.6 < float(str(found["correlation"])) < 0.9
    assert 0.6 < float(str(found["cross_correlation"])) < 0.95


def test_exact_signature_has_correlation_1_and_no_missed_bursts(site: Site) -> None:
    from iosig.cli.demo import _compare_signature
    from iosig.transforms.signatures.signature import Signature

    true: TrueSignature = signatures_truth(site)[1]
    published = {"method": "robust", "expected_correlation": 0.9, "missing_burst_count": 0}
    found = _compare_signature(true, published, Signature.from_curve(true.bytes_per_s, true.bursts))
    assert (found["cross_correlation"], found["correlation"]) == (pytest.approx(1.0), pytest.approx(1.0))
    assert (found["missed_burst_count"], found["false_burst_count"], found["expected_correlation"]) == (0, 0, 0.9)


def test_bursts_without_signature_are_missed(compared: pl.DataFrame) -> None:
    for name, direction, outcome in (("reader", "read", "too_few_samples"), ("absent", "write", None)):
        found = row(compared, name, direction)
        assert (found["outcome"], found["burst_count"], found["missed_burst_count"]) == (outcome, 0, 1)
        assert found["volume_bytes"] is found["correlation"] is None


def test_signature_without_true_bursts_counts_as_false(compared: pl.DataFrame) -> None:
    found = row(compared, "reader", "write")
    assert (found["outcome"], found["true_burst_count"], found["false_burst_count"]) == ("extracted", 0, 1)
    assert found["cross_correlation"] is None


def test_table_omits_idle_directions_without_signature(
    compared: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    _show_signatures(compared)
    out = capsys.readouterr().out
    told = [line.split()[:3] for line in out.splitlines() if line.split()[1:2] in (["read"], ["write"])]
    assert told == [
        ["absent", "write", "no"],
        ["reader", "read", "too_few_samples"],
        ["reader", "write", "robust"],
        ["writer", "write", "robust"],
    ]
    assert "2 more move no bytes and correctly have no signature." in out
