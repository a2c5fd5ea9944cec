"""Build the documentation site: `uv run --group docs python -m bench.site [--output DIR]`.

The tracked pages keep their paths, so that the links between them hold on the site as they do in a checkout. A page of
the Python reference is added for each package with public functions, and one for each tutorial, which runs. Zensical
builds the site, and refuses dead links.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from bench import tutorials
from iosig.reports.inline_svg import style_sheet
from iosig.reports.style import DARK, LIGHT

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "docs" / "zensical.toml"
#: files on the site: pages, figures, and what pages link to
_TRACKED = ("*.md", "docs", "sql", "LICENSE", ":!studies", ":!tests")
#: packages of the Python reference
_REFERENCE = ("transforms", "answers")
#: links to notebooks, which lead to their pages on the site
_NOTEBOOK_LINK = re.compile(r"(\]\([\w/.-]*tutorials/\w+)\.py\)")


def stage_pages(folder: Path) -> None:
    """Copy the tracked pages, and write the pages of the Python reference and of the tutorials."""
    listing = subprocess.run(["git", "ls-files", "-z", "--", *_TRACKED], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listing.stdout.decode().split("\0")):
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            text = (ROOT / name).read_text(encoding="utf-8")
            target.write_text(_NOTEBOOK_LINK.sub(r"\1.md)", text), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / name, target)
    shutil.copyfile(CONFIG, folder / CONFIG.name)
    with (folder / "source" / "docs" / "site.css").open("a", encoding="utf-8") as css:
        css.writelines(
            f'\n[data-md-color-scheme="{scheme}"] {{ {style_sheet(style)} }}'
            for scheme, style in (("default", LIGHT), ("slate", DARK))
        )
    for path, text in (*write_reference(), *write_tutorials()):
        target = folder / "source" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def write_reference() -> Iterator[tuple[str, str]]:
    """Yield path and text of each page of the Python reference, and of their index."""
    index = ["# Python reference", "Generated from the docstrings."]
    for package in _REFERENCE:
        index.append(f"## iosig.{package}\n\n{_summarize(ROOT / package / '__init__.py')}")
        modules = sorted(path for path in (ROOT / package).iterdir() if path.suffix == ".py" or path.is_dir())
        lines = []
        for path in modules:
            source = path / "__init__.py" if path.is_dir() else path
            if path.stem == "__init__" or not source.is_file():
                continue
            name = f"iosig.{package}.{path.stem}"
            lines.append(f"- [`{name}`]({name}.md): {_summarize(source)}")
            yield f"api/{name}.md", f"# {name}\n\n::: {name}\n"
        index.append("\n".join(lines))
    yield "api/index.md", "\n\n".join(index) + "\n"


def write_tutorials() -> Iterator[tuple[str, str]]:
    """Run the notebooks, and yield path and text of the page of each."""
    for notebook in sorted(tutorials.FOLDER.glob("*.py")):
        yield f"docs/tutorials/{notebook.stem}.md", tutorials.render_page(notebook)


def _summarize(module: Path) -> str:
    return (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").split("\n\n")[0].replace("\n", " ")


def build(output: Path) -> None:
    """Build the site in `output/site`; a dead link or anchor of a page is an error."""
    for name in ("source", "site", ".cache"):
        shutil.rmtree(output / name, ignore_errors=True)
    stage_pages(output)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(command, cwd=output, check=True, env=os.environ | {"NO_COLOR": "1"})


class _Links(HTMLParser):
    """Collect links, loaded resources and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the targets and the anchor of an element."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loaded += [values[name] for name in ("src", "srcset") if name in values]
        if tag == "link" and "href" in values and values.get("rel") != "canonical":
            self.loaded.append(values["href"])


def find_dead_links(site: Path) -> list[str]:
    """Return the links to files or anchors that the built site lacks, and resources of other hosts."""
    root = site.resolve()
    pages = {path: _parse_links(path) for path in root.rglob("*.html")}
    return sorted(
        f"{path.relative_to(root)}: {link}"
        for path, page in pages.items()
        for link in (*page.links, *page.loaded)
        if _is_dead(_resolve(root, path, link), urlsplit(link), pages, is_loaded=link in page.loaded)
    )


def _parse_links(path: Path) -> _Links:
    parser = _Links()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def _resolve(root: Path, page: Path, link: str) -> Path:
    path = unquote(urlsplit(link).path)
    return (root / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve() if path else page


def _is_dead(target: Path, link: SplitResult, pages: dict[Path, _Links], *, is_loaded: bool) -> bool:
    if link.scheme or link.netloc:
        return is_loaded and link.scheme != "data"
    if target.is_dir():
        target /= "index.html"
    return unquote(link.fragment) not in pages[target].anchors if target in pages else not target.is_file()


def main() -> None:
    """Build the site and check its links; exit with 1 if a link is dead."""
    parser = argparse.ArgumentParser(prog="python -m bench.site", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "docs", help="default: dist/docs")
    output = parser.parse_args().output
    build(output)
    dead = find_dead_links(output / "site")
    print(*dead, f"{output / 'site' / 'index.html'}: {len(dead)} dead links", sep="\n")
    raise SystemExit(bool(dead))


if __name__ == "__main__":
    main()
