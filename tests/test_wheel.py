"""What is built has all that is shipped."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_ROOMS = ("expectations", "flows", "reports", "studies", "transforms", "warehouse")


@pytest.mark.slow
def test_the_wheel_has_every_module_and_its_studies_work(tmp_path: Path) -> None:
    command = ["uv", "build", "--quiet", "--wheel", "--out-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    built = tmp_path / "built"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(built)
    modules = {path.relative_to(ROOT) for room in _ROOMS for path in (ROOT / room).rglob("*.py")}
    pages = (path for room in ("parts", "vendored") for path in (ROOT / "reports/site" / room).iterdir())
    modules |= {path.relative_to(ROOT) for path in pages}
    assert sorted(path for path in modules if not (built / path).is_file()) == []
    code = f"import sys; sys.path.insert(0, {str(built)!r}); from flows.command import main; main()"
    arguments = ["study", "networks", "--seeds", "1", "--json"]
    told = subprocess.run([sys.executable, "-I", "-c", code, *arguments], cwd=tmp_path, capture_output=True, check=True)
    assert told.stdout.startswith(b"{")
