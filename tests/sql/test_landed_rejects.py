"""landed.rejects: what every landing refused."""

from __future__ import annotations

from iosig.warehouse.contracts.quality import REJECTS
from tests.sql.given import Select, expect


def test_refused_rows_are_told_with_their_landing_in_the_order_of_lines(select: Select) -> None:
    rejects = """
        landing_id  line  reason  raw
        b           2     late    x|y
        a           .     empty   .
        b           1     wrong   z
        """
    found = select(REJECTS, {"landed.rejects": rejects})
    expect(found, "landing_id line reason raw \n a . empty . \n b 1 wrong z \n b 2 late x|y")
