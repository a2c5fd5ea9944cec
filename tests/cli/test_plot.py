"""`iosig plot` selects a signature, draws it or other figures, and explains why when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

from iosig.answers.signatures.view import Query, build_view, choose_application
from iosig.reports.style import DARK
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.releases import Release, find
from iosig.warehouse.store.store import Store
from tests.documents import require_schema
from tests.flows.signature_releases import Made, curve, publish
from tests.nights import Cli

HOSTILE = "o'x/'); drop table jobs; --\x1b[2J/8"
#: counters of four runs, with their step length, while server-side samples contain other traffic too
COUNTED = curve([(60, 90, 2e9), (180, 220, 1e9)])[::2] * 0.9
GAPPED = np.append(curve([(0, 10, 1e9)], 20), [np.nan, 3e9])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse with two releases: the only application of the first release is absent from the second."""
    made = Store(tmp_path_factory.mktemp("drawn") / "warehouse")
    publish(made, "first", [Made("zoe/first/1")])
    publish(
        made,
        "second",
        [
            Made(run_count=7, outlier_job_ids=("223001",), samples=tuple([GAPPED] * 7)),
            Made(method="iosi", is_default=False, bursts=((70, 90, 1e9),), band_ratio=None, support_ratio=None),
            Made(method="dtw", is_default=False, outcome="no_common_bursts"),
            Made(direction="read", outcome="no_io", background_bytes_per_s=None),
            Made("ana/ior_ab/16", outcome="too_few_samples", run_count=3),
            Made("ben/s3d/1024", direction="read", bursts=((10, 20, 5e9),)),
            Made("ben/s3d/1024", bursts=((10, 20, 1e9),)),
            Made("ben/s3d/2048", filesystem="scratch"),
            Made("ben/s3d/2048", filesystem="work", bursts=((10, 30, 1e9),)),
            Made("eve/nyx/8", run_count=4, exact=(COUNTED,) * 4),
            Made(HOSTILE),
        ],
    )
    return made


@pytest.fixture(scope="module")
def release(store: Store) -> Release:
    return find(store, None)


# ---- selection of the application

KNOWN = ["ana/ior_a/16", "ana/ior_ab/16", "ben/s3d/1024", "ben/s3d/2048", "cy/S3D_old/16"]
MACHINES = ["ana/cm1/8", "ana@smoky/cm1/8", "ana@titan/cm1/8", "ben@titan/nyx/4"]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("ana/ior_a/16", "ana/ior_a/16"),
        ("ior_a", "ana/ior_a/16"),
        ("IOR_A", "ana/ior_a/16"),
        ("ana/ior_a", "ana/ior_a/16"),
        ("ab", "ana/ior_ab/16"),
        ("s3d/2048", "ben/s3d/2048"),
        ("1024", "ben/s3d/1024"),
        ("s3d_", "cy/S3D_old/16"),
    ],
)
def test_unambiguous_part_of_a_name_selects_an_application(asked: str, meant: str) -> None:
    assert choose_application(KNOWN, asked) == meant


@pytest.mark.parametrize("asked", ["ben/nyx/4", "ben/nyx", "nyx", "ben", "ben@titan/nyx/4", "n@titan", "ben/n"])
def test_part_of_an_id_selects_an_application_without_its_machine(asked: str) -> None:
    assert choose_application(MACHINES, asked) == "ben@titan/nyx/4"


def test_applications_of_several_machines_need_the_machine() -> None:
    assert choose_application(MACHINES, "ana/cm1/8") == "ana/cm1/8"
    assert choose_application(MACHINES, "ana@smoky") == "ana@smoky/cm1/8"
    with pytest.raises(UsageError, match=r"is ambiguous: ana/cm1/8, ana@smoky/cm1/8, ana@titan/cm1/8\."):
        choose_application(MACHINES, "cm1/8")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("s3d", r"is ambiguous: ben/s3d/1024, ben/s3d/2048\. Pass a longer"),
        ("ior", r"is ambiguous: ana/ior_a/16, ana/ior_ab/16"),
        ("ior_b", r"named 'ior_b' has a signature\. Did you mean .*ana/ior_ab/16"),
        ("lammps", r"Known are ana/ior_a/16, ana/ior_ab/16, ben"),
        ("", "Known are"),
    ],
)
def test_ambiguous_or_unknown_name_is_refused_with_candidates(asked: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        choose_application(KNOWN, asked)


def test_long_candidate_list_is_truncated() -> None:
    with pytest.raises(UsageError, match=r"app7/8 and 92 more\."):
        choose_application([f"u/app{number}/8" for number in range(100)], "app")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Query("s3d/2048"), "several file systems: scratch, work; choose one with --filesystem"),
        (Query("s3d/2048", filesystem="home"), "no signature of file system 'home'. Available: scratch, work"),
        (Query("s3d/2048", filesystem="work", direction="read"), "has no read signature. Available: write"),
        (Query("ior_ab", method="iosi"), "no signature of method iosi. Available: robust"),
        (Query("ior_a", overlaid=("mean",)), "no signature of method mean. Available: dtw, iosi, robust"),
        (Query("zoe"), "No application named 'zoe' has a signature"),
    ],
)
def test_missing_signature_is_refused_with_available_alternatives(
    asked: Query, told: str, store: Store, release: Release
) -> None:
    with pytest.raises(UsageError, match=told):
        build_view(store, release, asked)


def test_default_is_the_default_method_and_the_busiest_direction(store: Store, release: Release) -> None:
    for asked, meant in (("ior_a", ("write", "robust")), ("1024", ("read", "robust")), ("ior_ab", ("write", "robust"))):
        view = build_view(store, release, Query(asked))
        assert (view.direction, view.main.method) == meant
    assert build_view(store, release, Query("ior_a", direction="read")).main.signature.outcome == "no_io"


# ---- content of the view


def test_view_equals_the_release(store: Store, release: Release) -> None:
    view = build_view(store, release, Query("ior_a", overlaid=("iosi", "robust", "dtw")))
    assert [(one.method, one.signature.outcome) for one in view.signatures] == [
        ("robust", "extracted"),
        ("iosi", "extracted"),
        ("dtw", "no_common_bursts"),
    ]
    found = view.main.signature
    assert np.array_equal(found.bytes_per_s, Made().rates)
    assert np.array_equal(found.low_bytes_per_s, Made().rates * 0.9)
    assert (found.bursts.start_s.tolist(), found.bursts.end_s.tolist()) == ([60.0, 180.0], [90.0, 220.0])
    assert found.background_bytes_per_s == 1e8
    iosi = view.signatures[1].signature
    assert np.isnan(iosi.low_bytes_per_s).all()
    assert np.isnan(iosi.bursts.support_ratio).all()
    assert (view.main.sample_count, view.main.used_sample_count) == (7, 6)


def test_samples_of_the_set_keep_their_gaps(store: Store, release: Release) -> None:
    view = build_view(store, release, Query("ior_a"))
    assert len(view.samples) == 7
    assert {one.start_s for one in view.samples} == {-0.5}
    assert all(np.array_equal(one.bytes_per_s, GAPPED, equal_nan=True) for one in view.samples)
    assert [one.job_id for one in view.samples if one.is_outlier] == [view.samples[1].job_id] == ["223001"]


def test_exact_samples_replace_server_side_samples_of_their_set(store: Store, release: Release, tmp_path: Path) -> None:
    view = build_view(store, release, Query("nyx"))
    assert [one.source for one in view.samples] == ["jobstats"] * 4
    assert all(np.array_equal(one.bytes_per_s, COUNTED) for one in view.samples)
    assert {one.source for one in build_view(store, release, Query("s3d/1024")).samples} == {"server"}


def test_sql_in_names_is_plain_text(store: Store, release: Release) -> None:
    view = build_view(store, release, Query("drop table"))
    assert view.application_id == HOSTILE
    assert len(view.samples) == 6


def test_control_characters_in_names_are_removed(cli: Cli, store: Store, tmp_path: Path) -> None:
    code, out, _ = cli("--warehouse", store.root, "plot", "signature", "drop table", "--output", tmp_path / "a.png")
    assert code == 0
    assert "drop table jobs" in out
    assert "\x1b" not in out


# ---- the command


@pytest.mark.parametrize("name", ["a.png", "deep/a.SVG"])
def test_signature_is_drawn_into_a_file(name: str, cli: Cli, store: Store, tmp_path: Path) -> None:
    arguments = ("plot", "signature", "ior_a", "--with", "iosi", "--output", tmp_path / name)
    code, out, err = cli("--warehouse", store.root, *arguments)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{tmp_path / name}: write of ana/ior_a/16 on scratch (robust)",
        "A run of 300 s writes 100 GB in 2 bursts; 1 burst of the samples is not in the signature  ·  "
        "6 of 7 runs used  ·  "
        "up to 2 GB/s",
    ]
    if name.endswith("png"):
        assert imread(tmp_path / name).shape[1] == 1320
    else:
        assert (tmp_path / name).read_text().startswith("<?xml")


def test_samples_are_drawn_with_the_reason_if_no_signature_exists(cli: Cli, store: Store, tmp_path: Path) -> None:
    code, out, _ = cli("--warehouse", store.root, "plot", "signature", "ior_ab", "--output", tmp_path / "a.png")
    assert code == 0
    assert "No signature: too few samples (3)" in out


def test_earlier_release_can_be_drawn(cli: Cli, store: Store, tmp_path: Path) -> None:
    arguments = ("plot", "signature", "first", "--release", "2018-02-09-first", "--output", tmp_path / "a.png")
    assert cli("--warehouse", store.root, *arguments)[0] == 0


@pytest.mark.slow
def test_release_without_signatures_is_reported(cli: Cli, tmp_path: Path) -> None:
    from tests.warehouse import releasing

    store = Store(tmp_path / "warehouse")
    releasing.publish(store, "none", {"jobs": {9: "job_id ended_on\n1 9"}})
    code, _, err = cli("--warehouse", store.root, "plot", "signature", "x", "--output", tmp_path / "a.png")
    assert code == 2
    assert "has no signatures" in err


# ---- intermediate results of IOSI


def test_intermediate_results_are_drawn(cli: Cli, store: Store, tmp_path: Path) -> None:
    arguments = ("plot", "iosi", "s3d/1024", "--direction", "write", "--method", "iosi_filtered")
    code, out, err = cli("--warehouse", store.root, *arguments, "--output", tmp_path / "a.png", "--style", "dark")
    assert (code, err) == (0, "")
    # the crest of a flat burst is at any of its seconds
    assert out == f"{tmp_path / 'a.png'}: 4 common bursts of 10 GB in 6 of 6 runs\n"
    assert to_hex(imread(tmp_path / "a.png")[0, 0]).upper() == DARK.ground


def test_numbers_of_iosi_are_printed_without_a_picture(
    cli: Cli, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = cli("--warehouse", store.root, "plot", "iosi", "ior_ab", "--json")
    assert (code, require_schema(out)) == (0, ["iosig-iosi/1"])
    assert json.loads(out)["outcome"] == "too_few_samples"
    assert list(tmp_path.iterdir()) == []
    assert cli("--warehouse", store.root, "plot", "iosi", "ior_ab", "--json", "--output", "a.svg")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_run_that_does_not_exist_is_refused(cli: Cli, store: Store, tmp_path: Path) -> None:
    arguments = ("plot", "iosi", "ior_ab", "--job", "1", "--output", tmp_path / "a.png")
    code, _, err = cli("--warehouse", store.root, *arguments)
    assert code == 2
    assert "The sample set has no run of job 1." in err


# ---- other figures


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse with different signatures in its two releases."""
    from tests.flows.attributed_releases import TABLES
    from tests.warehouse.releasing import publish

    made = Store(tmp_path_factory.mktemp("wall") / "warehouse")
    signed = (
        "application_id filesystem direction is_default outcome volume_bytes duration_s peak_bytes_per_s burst_count"
    )
    row = "ann/ior/8 lake write yes extracted {} 100 50 5"
    periodic = "subject_kind subject_id filesystem direction is_default outcome period_s bytes_per_period burst_width_s"
    beat = "application ann/ior/8 lake write yes periodic 100 200 10"
    for name, volume in (("first", 1000), ("second", 3000)):
        signatures = {9: f"{signed} \n {row.format(volume)}"}
        publish(made, name, TABLES | {"signatures": signatures, "periods": {9: f"{periodic} \n {beat}"}})
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("who", "lake"), "ann/s3d/8 moved most, 47% of 1.35 kB; 14% unattributed"),
        (("who", "lake", "--direction", "write"), "ann/s3d/8 wrote most, 46% of 1.3 kB"),
        (("calendar",), "lake moved 1.35 kB in 1 day"),
        (("calendar", "pond", "--direction", "read"), "pond moved 7 B in 1 day"),
        (("map",), "One application has I/O: most by ann/ior/8"),
        (("clock",), "1 application with a period; none of their bursts overlapped in the last day"),
        (("changes",), "1 of 1 signature changed: largest in ann/ior/8 write, bytes \u00d7 3"),
    ],
)
def test_figure_prints_its_path_and_a_summary(
    arguments: tuple[str, ...], told: str, cli: Cli, two_nights: Store, tmp_path: Path
) -> None:
    code, out, err = cli(
        "--warehouse", two_nights.root, "plot", *arguments, "--output", tmp_path / "a.png", "--style", "dark"
    )
    assert (code, err) == (0, "")
    assert out.startswith(f"{tmp_path / 'a.png'}: ")
    assert told in " ".join(out.split())
    assert to_hex(imread(tmp_path / "a.png")[0, 0]).upper() == DARK.ground


@pytest.mark.slow
def test_first_release_has_no_changes_to_draw(cli: Cli, two_nights: Store, tmp_path: Path) -> None:
    arguments = ("plot", "changes", "--release", "2018-02-09-first", "--output", tmp_path / "a.png")
    code, _, err = cli("--warehouse", two_nights.root, *arguments)
    assert (code, "there is nothing to compare with" in err) == (0, True)
    assert cli("--warehouse", two_nights.root, "plot", "calendar", "sea", "--output", tmp_path / "a.png")[0] == 2
    assert not (tmp_path / "a.png").exists()
