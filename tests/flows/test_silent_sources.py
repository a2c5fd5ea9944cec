"""A night with an unresponsive database, Prometheus server and Slurm lands other inputs and reports each timeout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_slurm import fake_slurm
from tests.hostile_servers import tcp_server
from tests.nights import Cli, write_small_site


@pytest.mark.slow
@pytest.mark.usefixtures("checks_here")
def test_unresponsive_sources_do_not_stop_the_night(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_site(tmp_path / "inbox")
    fake_slurm(tmp_path / "bin", monkeypatch).tell(sleep_s=60)
    with tcp_server() as silent, tcp_server(b"\xc8\x00\x00\x00", b"x") as dripping:
        (tmp_path / "iosig.toml").write_text(
            f"[schedule]\ninbox = '{tmp_path / 'inbox'}'\nslurm = true\n"
            f"databases = ['mysql://ann@127.0.0.1:{silent}/a', 'mysql://ann@127.0.0.1:{dripping}/b']\n"
            f"prometheus = ['http://127.0.0.1:{silent}']\n"
            "[polls]\ntime_zone = 'UTC'\n[live]\ntimeout_s = 0.4\ntotal_timeout_s = 1.0\n"
        )
        ours = ("--settings", tmp_path / "iosig.toml", "--warehouse", tmp_path / "warehouse")
        code, out, err = cli(*ours, "run", "--inline")
    assert code in (0, 3), out + err
    said = " ".join(err.split())
    assert f"127.0.0.1:{silent}/a: refused. The database did not answer within 0.4 s." in said
    assert f"127.0.0.1:{dripping}/b: refused. The database did not complete its answer within 1 s." in said
    assert f"http://127.0.0.1:{silent} did not answer within 0.4 s." in said
    assert "`sacct` did not answer within 0.4 s." in said
    assert '"4"' in cli(*ours, "sql", "--format", "csv", "select count(*)::text as n from jobs")[1]
