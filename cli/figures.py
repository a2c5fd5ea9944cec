"""Draw the figures of `docs/pictures.md` with that page's own commands, on the output of the demo.

Usage: `python -m iosig.cli.figures DEMO`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "pictures.md"
#: start of the block that creates the demo; it is skipped, because the demo already exists
_DEMO = "iosig demo"


def commands(page: str) -> Iterator[str]:
    """Yield the page's command blocks that run in the demo's folder, in order."""
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        if not block.startswith(_DEMO):
            yield block


def pictures(page: str) -> list[str]:
    """Return the file names of the page's pictures."""
    return re.findall(r"^!\[[^]]*\]\(figures/([\w.-]+)\)", page, re.MULTILINE)


def make(demo: Path, into: Path) -> list[str]:
    """Run the page's commands in the folder `demo`, and copy the pictures that they draw to the folder `into`.

    Returns the names of the copied pictures; a picture that was not drawn is skipped.
    """
    page = PAGE.read_text(encoding="utf-8")
    script = "\n".join(["set -e", "export IOSIG_WAREHOUSE=warehouse", *commands(page)])
    subprocess.run(["bash", "-c", script], cwd=demo, check=True)
    names = [name for name in pictures(page) if (demo / name).exists()]
    for name in names:
        shutil.copyfile(demo / name, into / name)
    return names


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder that `iosig demo --output` wrote.")
    print("\n".join(make(Path(sys.argv[1]), DOCS / "figures")))
