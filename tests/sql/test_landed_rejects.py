"""Test landed.rejects: refused rows of all landings."""

from __future__ import annotations

from iosig.warehouse.contracts.quality import REJECTS
from tests.sql.given import Select, expect


def test_rejects_have_their_landing_and_are_ordered_by_line(select: Select) -> None:
    rejects = """
        landing_id  line  reason  raw
        b           2     late    x|y
        a           .     empty   .
        b           1     wrong   z
        """
    found = select(REJECTS, {"landed.rejects": rejects})
    expect(found, "landing_id line reason raw \n a . empty . \n b 1 wrong z \n b 2 late x|y")
