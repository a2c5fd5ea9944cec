"""Convert a figure to an inline SVG element that supports light and dark themes and strict content policies.

Colors are CSS variables named by role (`var(--iosig-blue, #…)`), so one element serves both themes; `style_sheet`
defines them. Text remains text. The element has no style attribute and no style element, which a content security
policy would have to allow. Ids start with the figure's name, so that several figures can share a page.
"""

from __future__ import annotations

import io
import re
from xml.etree.ElementTree import Element, fromstring, tostring

from iosig.reports.panels import KINDS, Picture
from iosig.reports.style import DARK, FONT, LIGHT, Style, drawn_in
from iosig.reports.texts import plain

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_VARIABLES = {
    color.lower(): f"var(--iosig-{role}, {color.lower()})" for role, color in (LIGHT.shades() | LIGHT.colors()).items()
}
#: a number with more than two decimals, which exceed the resolution of a screen
_LONG_NUMBER = re.compile(r"(-?\d+\.\d\d)\d+")
#: a coordinate in the path of a rectangle, as matplotlib writes it
_NUMBER = r"(-?[\d.]+)"
_BOX = re.compile(rf"M {_NUMBER} {_NUMBER} L {_NUMBER} \2 L \3 {_NUMBER} L \1 \4 z ?")
_TURNED_BY_NOTHING = re.compile(r"rotate\(-?0 [^)]*\)")
#: elements without graphics, which are removed
_LEFT_OUT = ("metadata", "style")


def render_svg(picture: Picture, name: str, title: str) -> str:
    """Return a figure as an `svg` element that scales to the width of its container.

    name: unique on the page; letters, digits and hyphens. title: accessible label, read by screen readers.
    """
    import matplotlib

    with drawn_in(LIGHT):
        matplotlib.rcParams["svg.fonttype"] = "none"
        written = io.StringIO()
        picture.figure().savefig(written, format="svg", metadata=KINDS["svg"])
    root = fromstring(written.getvalue())
    _clean(root, name)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": plain(title), "font-family": f"{FONT}, Verdana, sans-serif"}
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.set("xmlns", _SVG.strip("{}"))
    return tostring(root, encoding="unicode")


def style_sheet(style: Style) -> str:
    """Return the CSS declarations of a style's color variables, to be placed inside a rule."""
    return " ".join(f"--iosig-{role}: {color};" for role, color in (style.colors() | style.shades()).items())


def page_rules() -> str:
    """Return CSS rules that switch between light and dark by system preference or `data-theme`."""
    light, dark = style_sheet(LIGHT), style_sheet(DARK)
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
        f"@media print {{ :root:root:root {{ {light} }} }}"
    )


def _clean(element: Element, name: str) -> None:
    """Clean an element recursively: shorten numbers, replace inline styles, and make ids unique."""
    for child in list(element):
        if child.tag.removeprefix(_SVG) in _LEFT_OUT:
            element.remove(child)
        else:
            _clean(child, name)
    element.tag = element.tag.removeprefix(_SVG)
    element.tail = None
    if not (element.text or "").strip():
        element.text = None
    element.attrib = {key: value for key, value in _attributes(element, name) if value}


def _attributes(element: Element, name: str) -> list[tuple[str, str]]:
    attributes: list[tuple[str, str]] = []
    for key, value in element.attrib.items():
        if key == "style":
            attributes += [_parse_declaration(part, name) for part in value.split(";") if part.strip()]
        elif key == f"{_XLINK}href":
            attributes.append(("href", f"#{name}-{value[1:]}" if value.startswith("#") else value.replace("\n", "")))
        elif key == "id":
            # ids of groups and images are dropped, since nothing refers to them
            attributes.append((key, "" if element.tag in ("g", "image") else f"{name}-{value}"))
        else:
            short = _TURNED_BY_NOTHING.sub("", _LONG_NUMBER.sub(r"\1", value)).replace("\n", "").strip()
            if key == "d":
                short = _BOX.sub(r"M\1 \2H\3V\4H\1z", " ".join(short.split()))
            attributes.append((key, _map_value(short, name)))
    return attributes


def _parse_declaration(declaration: str, name: str) -> tuple[str, str]:
    key, _, value = declaration.partition(":")
    value = value.strip()
    if key.strip() == "font-family":
        return "font-family", ""
    return key.strip(), _map_value(value, name)


def _map_value(value: str, name: str) -> str:
    """Replace colors by variables of their roles, and prefix references with the figure's name."""
    return _VARIABLES.get(value.lower(), value.replace("url(#", f"url(#{name}-"))
