"""What is built has all that is shipped."""

from __future__ import annotations

import os
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


@pytest.mark.slow
def test_an_installed_iosig_keeps_its_warehouse_in_the_users_data_directory(tmp_path: Path) -> None:
    build = ["uv", "build", "--quiet", "--wheel", "--out-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run(
        ["uv", "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")], check=True, timeout=60
    )
    python = tmp_path / "venv" / "bin" / "python"
    install = ["uv", "pip", "install", "--quiet", "--no-deps", "--python", str(python), str(wheel)]
    subprocess.run(install, check=True, timeout=120)
    # its dependencies are those of this environment: to install them all again takes minutes
    dependencies = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    before = {path for path in site.rglob("*") if path.suffix != ".pyc"}
    (tmp_path / "jobs.sacct").write_text(
        "JobID|User|Start|End|State|NNodes|JobName\n1|u1|2026-03-02T10:00:00|2026-03-02T11:00:00|COMPLETED|2|ok\n"
    )
    home = tmp_path / "home"
    unset = ("IOSIG_WAREHOUSE", "XDG_DATA_HOME", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {"HOME": str(home)}
    iosig = [str(tmp_path / "venv" / "bin" / "iosig"), "land", "--time-zone", "UTC", str(tmp_path / "jobs.sacct")]
    done = subprocess.run(iosig, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    warehouse = home / ".local" / "share" / "iosig" / "warehouse"
    if sys.platform == "darwin":
        warehouse = home / "Library" / "Application Support" / "iosig" / "warehouse"
    assert f"Warehouse: {warehouse} " in done.stderr.replace("\n", " ")
    assert (warehouse / "landed").is_dir()
    assert {path for path in site.rglob("*") if path.suffix != ".pyc" and path.name != "__pycache__"} <= before
