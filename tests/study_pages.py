"""What tests of studies' pages share: a page as it is written, its figures and tables checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from iosig.studies.study import Study


def page_of(study: Study, params: Any, results: Any, folder: Path) -> str:
    """Write a page; return its text, of which each figure is there, once, and each table has rows of one length."""
    text = study.write(params, results, folder).read_text(encoding="utf-8")
    figures = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(figures) == len(set(figures)) > 0
    assert sorted(figures) == sorted(f"figures/{path.name}" for path in (folder / "figures").iterdir())
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
    assert "nan" not in re.findall(r"[a-zA-Z]+", text)
    return text
