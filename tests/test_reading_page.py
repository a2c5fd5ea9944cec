"""Each example of docs/reading.md reads the same data as iosig, without iosig."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from iosig.cli.main import iosig
from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import publish, read

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reading.md"
#: packages of readers that iosig does not depend on
PACKAGES = {
    "Spark": ["pyspark==4.1.*", "pandas==2.*", "setuptools"],
    "DuckDB's iceberg extension": [
        "duckdb==1.5.5",
        "duckdb-extensions",
        "duckdb-extension-iceberg==1.5.5",
        "duckdb-extension-avro==1.5.5",
    ],
}
#: examples that read one day of three
OF_A_DAY = ("A folder / polars", "A folder / DuckDB")


def examples(language: str) -> list[Any]:
    """Return the page's examples in a language: their heading, and their text."""
    found: list[Any] = []
    above, below = "", ""
    pattern = rf"^(##+) ([^\n]+)$|^```{language}\n(.*?)^```"
    for level, title, block in re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        if level:
            above, below = (title, "") if level == "##" else (above, title)
        else:
            name = f"{above} / {below}" if below else above
            marks = [pytest.mark.long if below in PACKAGES else pytest.mark.slow]
            found.append(pytest.param(name, block, id=name, marks=marks))
    return found


class Site(NamedTuple):
    """A warehouse of two releases, and exports of the second."""

    store: Store
    folder: Path

    def put_in(self, text: str) -> str:
        """Return an example with the paths of this machine instead of the page's."""
        first, _ = releases.history(self.store)
        places = {
            "/data/release": self.folder / "release",
            "/data/iosig": self.store.root,
            "20180209T023000Z-run": first.release_id,
        }
        for name, place in places.items():
            text = text.replace(name, str(place))
        return text

    def count(self, place: int) -> int:
        """Return the number of jobs in a release according to iosig."""
        return read(self.store, releases.history(self.store)[place], "jobs").height


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("reading")
    store = Store(folder / "iosig")
    days = {8: "job_id user \n 0 ann", 9: "job_id user \n 1 ann \n 2 bob", None: "job_id ended_at \n run ."}
    publish(store, "first", {"jobs": days})
    publish(store, "second", {"jobs": {9: "job_id user \n 1 ann"}})
    for option, name in (("--output", "release"), ("--output", "release.duckdb")):
        arguments = ["--warehouse", str(store.root), "export", "--all", option, str(folder / name)]
        iosig.main(arguments, standalone_mode=False)
    return Site(store, folder)


@pytest.mark.parametrize(("name", "example"), examples("python"))
def test_python_example_reads_the_release(name: str, example: str, site: Site, tmp_path: Path) -> None:
    packages = PACKAGES.get(name.split(" / ")[-1])
    code = site.put_in(example)
    if packages:
        told = elsewhere(packages, f"{code}\nprint('jobs:', len(jobs))", tmp_path)
        counts = {"jobs": int(told.rsplit("jobs: ", 1)[1])}
    else:
        names: dict[str, Any] = {}
        exec(code, names)
        counts = {name: len(names[name]) for name in ("jobs", "before") if name in names}
    expected = 1 if name in OF_A_DAY else site.count(1)
    assert counts == {"jobs": expected} | ({"before": site.count(0)} if "before" in counts else {})
    assert site.count(0) != site.count(1)


def elsewhere(packages: list[str], code: str, folder: Path) -> str:
    """Run code in an environment of only these packages and return its output; skip if it cannot be installed."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on this machine")
    if any("pyspark" in package for package in packages) and not shutil.which("java"):
        pytest.skip("Spark needs Java, which is not on this machine")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", folder / "venv"], check=True)
    had = subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *packages], check=False)
    if had.returncode:
        pytest.skip(f"{', '.join(packages)} cannot be had")
    # DuckDB keeps its extensions in the user's home
    home = os.environ | {"HOME": str(folder)}
    command = [str(python), "-I", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=home).stdout


@pytest.mark.parametrize(("name", "example"), examples("r"))
def test_r_example_reads_the_release(name: str, example: str, site: Site) -> None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not on this machine")
    told = subprocess.run([rscript, "-e", f"{site.put_in(example)}\ncat('jobs:', nrow(jobs))"], capture_output=True)
    if b"there is no package" in told.stderr:
        pytest.skip("R's packages are not on this machine")
    assert int(told.stdout.rsplit(b"jobs:", 1)[1]) == site.count(1), name


def test_page_has_an_example_of_every_reader() -> None:
    names = {example.id for example in examples("python")}
    assert names >= {f"A folder / {name}" for name in ("pandas", "polars", "DuckDB", "pyarrow", "Spark")}
    assert names >= {"A DuckDB file", "Iceberg / polars", "Iceberg / DuckDB's iceberg extension"}
    assert names >= {"Iceberg / pyiceberg with the catalogue", "Iceberg / pyiceberg without a catalogue"}
    assert len(examples("r")) == 2
