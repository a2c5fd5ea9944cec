"""Test the reuse of rows of the base release: rows of unchanged signatures, and of other kinds of subjects."""

from __future__ import annotations

from iosig.warehouse.contracts.classes import KEPT_CLASSES
from iosig.warehouse.contracts.periods import KEPT_NODES, KEPT_PERIODS, KEPT_SEGMENTS
from iosig.warehouse.contracts.signatures import SIGNATURE_CURVES
from tests.sql.given import Select, expect

SIGNATURES, POINTS = "transforms.signatures", "transforms.signature_points"
CURVES, PERIODS = "transforms.signature_curves", "transforms.kept_periods"


def test_curve_is_kept_if_unchanged_and_analyzed_in_base_release(select: Select) -> None:
    signatures = """
        application_id  filesystem  direction  method  is_default  outcome
        same            lake        read       robust  yes         extracted
        same            lake        read       mean    no          extracted
        changed         lake        read       robust  yes         extracted
        longer          lake        read       robust  yes         extracted
        unanswered      lake        read       robust  yes         extracted
        idle            lake        read       robust  yes         no_io
    """
    points = """
        application_id  filesystem  direction  method  offset_s  bytes_per_s
        same            lake        read       robust  1         2
        same            lake        read       robust  0         1
        same            lake        read       mean    0         9
        changed         lake        read       robust  0         5
        longer          lake        read       robust  0         5
        longer          lake        read       robust  1         5
        unanswered      lake        read       robust  0         3
    """
    released = """
        application_id  filesystem  direction  method  offset_s  bytes_per_s
        same            lake        read       robust  0         1
        same            lake        read       robust  1         2
        changed         lake        read       robust  0         4
        longer          lake        read       robust  0         5
        unanswered      lake        read       robust  0         3
    """
    answers = """
        subject_kind  subject_id  filesystem  direction
        application   same        lake        read
        application   changed     lake        read
        application   longer      lake        read
        job           unanswered  lake        read
    """
    given = {
        SIGNATURES: signatures,
        POINTS: points,
        "released.signatures": signatures,
        "released.signature_points": released,
        "run.released_answers": answers,
    }
    expected = """
        application_id  curve_per_s        is_kept
        changed         5                  no
        longer          5,5                no
        same            1,2                yes
        unanswered      3                  no
        """
    expect(select(SIGNATURE_CURVES, given), expected)


def test_rows_are_kept_by_kind_and_applications_by_signature(select: Select) -> None:
    curves = "application_id filesystem direction is_kept \n a lake read yes \n b lake read no"
    released = """
        subject_kind  subject_id  cluster  filesystem  direction  outcome
        application   a           .        lake        read       no_data
        application   a           .        lake        write      no_data
        application   b           .        lake        read       no_data
        job           a           c        lake        read       no_data
        series        a           .        lake        read       no_data
    """
    kept = "subject_kind subject_id direction \n application a read \n job a read"
    for model, base in ((KEPT_CLASSES, "released.classes"), (KEPT_PERIODS, "released.periods")):
        expect(select(model, {CURVES: curves, base: released}, subject_kinds=["application", "job"]), kept)
        assert select(model, {CURVES: curves, base: released}, subject_kinds=[]).is_empty()


def test_segments_and_nodes_are_kept_with_their_periods(select: Select) -> None:
    periods = """
        subject_kind  subject_id  cluster  filesystem  direction  method      outcome
        job           a           .        lake        read       null_tested  periodic
        trace         t           .        .           read       null_tested  periodic
        trace         t           .        .           read       dft         periodic
        job           u           .        .           read       null_tested  periodic
    """
    segments = """
        subject_kind  subject_id  cluster  filesystem  direction  method      segment
        job           a           .        lake        read       null_tested  1
        job           a           .        lake        read       null_tested  2
        job           a           .        pond        read       null_tested  1
        job           b           .        lake        read       null_tested  1
    """
    expect(
        select(KEPT_SEGMENTS, {PERIODS: periods, "released.period_segments": segments}),
        "subject_id filesystem segment \n a lake 1 \n a lake 2",
    )
    nodes = "trace_id direction host outcome"
    nodes += "\n t read n1 no_io \n t read n2 no_io \n t write n1 no_io \n u read n1 no_io"
    expect(
        select(KEPT_NODES, {PERIODS: periods, "released.node_periods": nodes}),
        "trace_id direction host \n t read n1 \n t read n2",
    )
