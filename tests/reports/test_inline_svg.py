"""Pictures within pages: colors as variables, texts as texts, no scripts or resources, and prefixed ids."""

from __future__ import annotations

import re
from xml.etree.ElementTree import fromstring

from matplotlib.figure import Figure

from iosig.reports import style
from iosig.reports.inline_svg import page_rules, render_svg
from iosig.reports.panels import picture

#: A name from the input that would close its element if it were not escaped.
_HOSTILE = '</text><script>alert(1)</script> style="fill: url(#x)" &amp; $x$'


@picture((4.0, 3.0))
def draw(figure: Figure) -> None:
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    axes.fill_between([0, 1], [0, 1], color=style.ORANGE, hatch="//")
    axes.plot([0, 1], [0, 1], "o", color=style.BLUE)
    axes.imshow([[1, 2]], extent=(0, 1, 0, 1))
    axes.set_title(_HOSTILE)


def test_colors_are_variables_and_texts_are_texts() -> None:
    root = fromstring(render_svg(draw(), "wall-1", "a & b"))
    values = [value for element in root.iter() for value in element.attrib.values()]
    assert f"var(--iosig-blue, {style.LIGHT.blue.lower()})" in values
    plain = {value for value in values if re.fullmatch(r"#[0-9a-f]{6}", value)}
    assert plain & {color.lower() for color in style.LIGHT.colors().values()} == set()
    assert _HOSTILE in [element.text for element in root.iter()]
    assert (root.get("aria-label"), root.get("width"), root.get("viewBox")) == ("a & b", None, "0 0 288 216")


def test_svg_needs_no_policy_and_no_other_file() -> None:
    root = fromstring(render_svg(draw(), "wall-1", "x"))
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names.isdisjoint({"style", "script", "metadata", "foreignObject"})
    attributes = [(key, value) for element in root.iter() for key, value in element.attrib.items()]
    assert [key for key, _ in attributes if key == "style" or key.startswith("on")] == []
    links = [value for key, value in attributes if key.endswith("href")]
    assert all(link.startswith(("#wall-1-", "data:image/png;base64,")) for link in links)


def test_references_have_prefixed_ids_as_targets() -> None:
    root = fromstring(render_svg(draw(), "wall-1", "x"))
    ids = [found for element in root.iter() if (found := element.get("id"))]
    values = " ".join(value for element in root.iter() for value in element.attrib.values())
    asked = set(re.findall(r"(?:url\()?#(wall[\w-]*)", values))
    assert asked
    assert asked <= set(ids)
    assert len(ids) == len(set(ids))
    assert all(each.startswith("wall-1-") for each in ids)


def test_svg_is_deterministic() -> None:
    assert render_svg(draw(), "a", "x") == render_svg(draw(), "a", "x")


def test_rules_have_every_role_for_both_themes() -> None:
    rules = page_rules()
    for role, color in style.DARK.colors().items():
        assert rules.count(f"--iosig-{role}: {color};") == 2
