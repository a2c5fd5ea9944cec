"""The wheel of `uv build` contains all shipped files, under one package name."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import house

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = (*house.ROOMS, "sql")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["uv", "build", "--quiet", "--out-dir", str(folder)], cwd=ROOT, check=True, timeout=180)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and a foreign `sql` package, which borrows this environment's dependencies."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder)], check=True, timeout=60)
    install = ["uv", "pip", "install", "--quiet", "--no-deps", "--python", str(folder / "bin" / "python"), str(wheel)]
    subprocess.run(install, check=True, timeout=120)
    (site,) = (folder / "lib").glob("python*/site-packages")
    dependencies = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    # an entry of sys.path, not a site directory: the editable install of the checkout stays out
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    (site / "sql").mkdir()
    (site / "sql" / "__init__.py").write_text("is_foreign = True\n")
    return folder


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program of the environment with a home without a warehouse."""
    unset = ("IOSIG_WAREHOUSE", "XDG_DATA_HOME", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["HOME"] = str(tmp_path / "home")

    def run_program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(installed / "bin" / name), *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run_program


def shipped() -> set[str]:
    """Return the files of the packages that git tracks."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *_PACKAGES]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("this is not a git checkout")
    names = {name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    return {f"iosig/{name}" for name in names} | {"iosig/__init__.py"}


def test_wheel_contains_only_iosig(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == shipped()


def test_sdist_contains_the_same_packages(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}

    assert shipped() - names == set()


def test_installed_iosig_does_not_shadow_other_packages(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    code = "import sql, iosig.cli.main, importlib.util as u; print(sql.is_foreign, u.find_spec('flows'))"
    done = run("python", "-c", code)

    assert (done.returncode, done.stdout) == (0, "True None\n"), done.stderr


def test_installed_study_runs(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("iosig", "study", "networks", "--seeds", "1", "--json")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{")


def test_installed_iosig_uses_the_data_directory_of_the_user(
    run: Callable[..., subprocess.CompletedProcess[str]], installed: Path, tmp_path: Path
) -> None:
    def files() -> set[Path]:
        return {path for path in installed.rglob("*") if path.suffix != ".pyc" and path.name != "__pycache__"}

    before = files()
    (tmp_path / "jobs.sacct").write_text(
        "JobID|User|Start|End|State|NNodes|JobName\n1|u1|2026-03-02T10:00:00|2026-03-02T11:00:00|COMPLETED|2|ok\n"
    )
    done = run("iosig", "land", "--time-zone", "UTC", str(tmp_path / "jobs.sacct"))

    assert done.returncode == 0, done.stderr
    home = tmp_path / "home"
    warehouse = home / ".local" / "share" / "iosig" / "warehouse"
    if sys.platform == "darwin":
        warehouse = home / "Library" / "Application Support" / "iosig" / "warehouse"
    assert f"Warehouse: {warehouse} " in done.stderr.replace("\n", " ")
    assert (warehouse / "landed").is_dir()
    assert files() == before
