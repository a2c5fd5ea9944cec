"""Tables and figures of a study's page."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from jinja2 import UndefinedError

from iosig.studies.pages import Table, Template, format_percent, format_short, write_page


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(None, "-"), (0.0, "0 %"), (1.0, "100 %"), (0.1234, "12 %"), (0.0123, "1.2 %"), (0.000456, "0.046 %")],
)
def test_percent_is_formatted_or_a_dash(ratio: float | None, shown: str) -> None:
    assert format_percent(ratio) == shown


def test_percent_may_have_decimals() -> None:
    assert (format_percent(0.1234, 1), format_percent(None, 1)) == ("12.3 %", "-")


def test_small_numbers_have_no_zero_before_the_point() -> None:
    assert [format_short(value) for value in (0.974, 1.0, -0.001, -0.5, 0.0)] == [".97", "1.00", ".00", "-.50", ".00"]


FRAME = pl.DataFrame({"name": ["a", "b"], "ratio": [0.1234, None], "count": [1234, 0]})


def test_table_cells_are_formatted_rows_of_a_frame() -> None:
    found = Table.from_pattern("| who | both | ratio |\n| {name} | {count:,} of {ratio:%1} | {ratio:%} |", FRAME)
    assert found.columns == ["who", "both", "ratio"]
    assert found.rows == [("a", "1,234 of 12.3 %", "12 %"), ("b", "0 of -", "-")]


def test_pivot_has_a_column_per_value_and_a_dash_for_missing_rows() -> None:
    frame = pl.DataFrame({"level": ["low", "low", "high"], "way": ["x", "y", "y"], "share": [0.5, 0.25, 1.0]})
    found = Table.pivot(frame, {"": "level"}, "way", "{share:%}")
    assert found == Table(("", "x", "y"), [("low", "50 %", "25 %"), ("high", "-", "100 %")])
    assert Table.pivot(frame, {"": "{level} of {share:%}"}, "way", "{way}").rows[2] == ("high of 100 %", "-", "y")
    chosen = Table.pivot(frame, {"": "level"}, "way", lambda row: str(row["share"]), ["y", "z"])
    assert chosen == Table(("", "y", "z"), [("low", "0.25", "-"), ("high", "1.0", "-")])


SHARES = pl.DataFrame({"level": ["calm", "busy"], "ratio": [0.1, 0.25]})

TEMPLATE = """\
# {{ count | counted("run") }}

{% if count > 1 %}
## Many
{% endif %}

{% call table(frame, "All") %}
| name | share |
| {name} | {ratio:%} |
{% endcall %}
{{ show(wide, "Wide", in_page=false) }}

{{ described("way", "what it is", ways) }}

{{ figure("dot", "A dot") }}

{{ {"calm": 0.3, "busy": 1.0} | listed("g") }}: {{ 0.5 | percent }}, {{ none | form(".2f") }}
of {{ shares | percents("ratio") }}
"""


def test_page_contains_its_tables_and_figures(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(TEMPLATE)
    wide = Table(("a|b",), [("c",)])
    values = {"count": 1, "frame": FRAME, "wide": wide, "ways": {"first": ("as it is", 0)}, "shares": SHARES}
    template = Template(tmp_path / "page.md", {"dot": lambda path: path.write_bytes(b".")})
    page = write_page(tmp_path / "new" / "some-study.md", template, values, "<!-- mark -->")
    assert page.read_text() == (
        "<!-- mark -->\n\n# 1 run\n\n| name | share |\n| --- | --- |\n| a | 12 % |\n| b | - |\n\n"
        "| way | what it is |\n| --- | --- |\n| first | as it is |\n\n![A dot](figures/some-study-dot.png)\n\n"
        "calm 0.3, busy 1: 50 %, -\nof 10 % (calm), 25 % (busy)\n"
    )
    assert (tmp_path / "new" / "figures" / "some-study-dot.png").read_bytes() == b"."
    assert [title for title, _ in template.tables] == ["All", "Wide"]
    assert wide.markdown == "| a\\|b |\n| --- |\n| c |"


def test_rendering_for_a_terminal_omits_figures(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("{{ figure('dot', 'A dot') }}")
    assert Template(tmp_path / "page.md", {}).render({}) == "\n"


def test_missing_template_value_raises(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("{{ lacking }}")
    with pytest.raises(UndefinedError, match="lacking"):
        Template(tmp_path / "page.md", {}).render({})
