"""Each way to install iosig, in a clean environment without this checkout's packages."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: tests that use most dependencies
PART = (
    "tests/cli/test_main.py", "tests/flows/test_nightly.py", "tests/warehouse/releases", "tests/expectations",
    "tests/transforms/periods",
)  # fmt: skip
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def clean_environment(home: Path) -> dict[str, str]:
    """Return an environment with a home of its own; downloads come from the cache of uv, if it has them."""
    kept = ("PATH", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "SSL_CERT_FILE", "HTTPS_PROXY", "TMPDIR")
    cache = subprocess.run(["uv", "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    folders = {"HOME": str(home), "UV_CACHE_DIR": cache, "UV_TOOL_BIN_DIR": str(home / "bin")}
    return {name: os.environ[name] for name in kept if name in os.environ} | folders


def run(*command: str | Path, environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def require_demo(program: Path, environment: dict[str, str], folder: Path) -> None:
    assert run(program, "--version", environment=environment, folder=folder) == f"iosig, version {VERSION}\n"
    run(program, "demo", "--output", "demo", environment=environment, folder=folder)
    counted = ("--warehouse", "demo/warehouse", "sql", "select count(*) as count from signatures", "--format", "csv")
    text = run(program, *counted, environment=environment, folder=folder)
    assert int(text.split()[1]) > 0


@pytest.mark.long
def test_tool_is_installed_from_the_wheel(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path)
    run("uv", "build", "--quiet", "--out-dir", tmp_path / "dist", environment=environment, folder=ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run("uv", "tool", "install", "--quiet", wheel, environment=environment, folder=tmp_path)
    require_demo(tmp_path / "bin" / "iosig", environment, tmp_path)


@pytest.mark.long
def test_script_of_the_images_installs_the_pinned_versions(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path)
    source = tmp_path / "src"
    run("git", "clone", "--quiet", ROOT, source, environment=environment, folder=tmp_path)
    script = source / "containers" / "install.sh"
    run("sh", script, source, tmp_path / "opt", environment=environment, folder=tmp_path)
    subprocess.run(["rm", "-rf", source], check=True)
    require_demo(tmp_path / "opt" / "bin" / "iosig", environment, tmp_path)


def run_part_of_the_tests(folder: Path, *options: str) -> None:
    """Install the dependencies of a clone that `uv sync` selects with the options, and run a part of the first tier."""
    environment = clean_environment(folder) | {"UV_PYTHON_DOWNLOADS": "never"}
    clone = folder / "clone"
    run("git", "clone", "--quiet", ROOT, clone, environment=environment, folder=folder)
    run("uv", "sync", "--quiet", "--all-extras", *options, environment=environment, folder=clone)
    run(clone / ".venv" / "bin" / "python", "-m", "pytest", "-q", *PART, environment=environment, folder=clone)


@pytest.mark.long
def test_lowest_versions_of_direct_dependencies_pass_a_part_of_the_tests(tmp_path: Path) -> None:
    run_part_of_the_tests(tmp_path, "--resolution", "lowest-direct")


def find_python(version: str) -> str | None:
    """Return the path of a Python that uv or pyenv has installed."""
    command = ["uv", "python", "find", "--no-python-downloads", version]
    search = subprocess.run(command, capture_output=True, text=True, check=False)
    # uv does not list versions of pyenv that are not selected
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return search.stdout.strip() if search.returncode == 0 else str(installed[-1]) if installed else None


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_newer_python_passes_a_part_of_the_tests(tmp_path: Path, version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    run_part_of_the_tests(tmp_path, "--locked", "--python", python)


@pytest.mark.parametrize("name", ["Containerfile", "iosig.def"])
def test_images_run_the_tested_script(name: str) -> None:
    text = (ROOT / "containers" / name).read_text(encoding="utf-8")
    assert "sh /src/containers/install.sh /src /opt/iosig" in text
    assert "IOSIG_WAREHOUSE=/warehouse" in text
