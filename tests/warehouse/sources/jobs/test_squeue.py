"""Test squeue's text: consecutive replies with their times, and replies of a real Slurm 22.05."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.contracts.jobs import QUEUE_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.jobs import slurm_commands, squeue
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.servers import slurm
from tests.warehouse.sources.batch_reading import UTC_ZONE, gathered

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: as Slurm 22.05.8 writes it
ANSWER = """\
JOBID|USER|ACCOUNT|PARTITION|STATE|SUBMIT_TIME|START_TIME|END_TIME|TIME_LIMIT|NODES|CPUS|REASON|COMMENT|NAME
3_[1-9%2]|ann|(null)|io|PENDING|2026-03-01T11:11:55|N/A|N/A|UNLIMITED|1|2|Resources|(null)|arr
4|ann|(null)|io|PENDING|2026-03-01T11:11:55|2026-03-01T13:11:55|NONE|UNLIMITED|1|2|BeginTime|(null)|later
1|bob|climate|io|RUNNING|2026-03-01T11:11:55|2026-03-01T11:11:57|2026-03-01T11:41:57|30:00|1|1|None|fs=scratch|job0
"""


def batches(path: Path) -> tuple[pl.DataFrame, list[str]]:
    rows, refused = gathered(squeue.read(path, UTC_ZONE), QUEUE_RECORDS)
    return rows, refused["reason"].to_list()


def test_consecutive_replies_are_read_with_their_times(tmp_path: Path) -> None:
    path = tmp_path / "queue.txt"
    path.write_text(f"1772366400\n{ANSWER}2026-03-01T12:05:00Z\n{ANSWER}")
    assert recognize(read_head(path)).name == "squeue"
    rows, reasons = batches(path)
    assert reasons == []
    assert rows["observed_at"].to_list() == [AT] * 3 + [AT.replace(minute=5)] * 3
    assert rows["line"].to_list() == [3, 4, 5, 8, 9, 10]
    told = rows.head(3).select("job_id", "account", "job_name", "time_limit_s", "wait_reason", "run_count", "comment")
    assert told.rows() == [
        ("3_[1-9%2]", None, "arr", None, "Resources", 9, None),
        ("4", None, "later", None, "BeginTime", 1, None),
        ("1", "climate", "job0", 1800.0, None, 1, "fs=scratch"),
    ]


@pytest.mark.parametrize(
    ("fields", "line", "name"),
    [
        ("JOBID|STATE|TIME_LIMIT|NAME", "5|RUNNING|30:00|a|b", "a|b"),
        # the comment or the name has the separator
        ("JOBID|STATE|TIME_LIMIT|COMMENT|NAME", "5|RUNNING|30:00|a|b|c", None),
        ("JOBID|STATE|NAME|TIME_LIMIT", "5|RUNNING|a|b|30:00", None),
        ("JOBID^|^STATE^|^TIME_LIMIT^|^COMMENT^|^NAME", "5^|^RUNNING^|^30:00^|^x|y^|^a|b", "a|b"),
        ("JOBID\tSTATE\tTIME_LIMIT\tNAME", "5\tRUNNING\t30:00\ta|b", "a|b"),
        ("JOBID,STATE,TIME_LIMIT,NODELIST(REASON),NAME", "5,RUNNING,30:00,n[1,3],a", None),
    ],
)
def test_surplus_separator_is_attributed_only_if_one_field_may_have_it(
    tmp_path: Path, fields: str, line: str, name: str | None
) -> None:
    path = tmp_path / "queue-1772366400"
    path.write_text(f"# at noon\n{fields}\n{line}\n")
    assert recognize(read_head(path)).name == "squeue"
    rows, reasons = batches(path)
    assert rows["job_name"].to_list() == ([] if name is None else [name])
    assert len(reasons) == (name is None)


@pytest.mark.parametrize("message", ["slurm_load_jobs error: Unable to contact slurm controller", "squeue: error: no"])
def test_output_with_error_message_is_refused(tmp_path: Path, message: str) -> None:
    path = tmp_path / "queue-1772366400"
    path.write_text(message + "\n")
    with pytest.raises(InputRefused, match=message.partition(" error: ")[2]):
        recognize(read_head(path))
    path.write_text(ANSWER + message + "\n")
    with pytest.raises(InputRefused, match="so it is incomplete"):
        batches(path)


def test_padded_table_is_refused_with_remedy(tmp_path: Path) -> None:
    path = tmp_path / "queue-1772366400"
    path.write_text("  JOBID PARTITION  NAME  USER ST  TIME  NODES NODELIST(REASON)\n  5  io  a  ann  R  0:10  1 n1\n")
    with pytest.raises(InputRefused, match="padded columns") as raised:
        recognize(read_head(path))
    assert "--format=" in raised.value.remedy


@pytest.mark.long
@pytest.mark.slow
def test_real_slurm_reports_running_and_pending_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with slurm() as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        told = ["-n2", "--output=/dev/null", "--wrap", "sleep 60", "--comment=fs=scratch"]
        for more in (["-Jfirst", "--time=30"], ["-Jse|cond", "--array=1-9%3"], ["-Jlater", "--begin=now+1hour"]):
            subprocess.run(["sbatch", *more, *told], check=True, capture_output=True)
        wanted = {("first", "RUNNING"), ("se|cond", "PENDING"), ("later", "PENDING")}
        found = set()
        for _ in range(100):
            source, path = slurm_commands.query_squeue(datetime.now(UTC), tmp_path, 30.0)
            (batch,) = source.read(path, Reading(time_zone="UTC"))
            found = set(batch.rows.select("job_name", "queue_state").iter_rows())
            if found == wanted:
                break
        assert (source.name, found) == ("squeue-json", wanted)
        rows = batch.rows.sort("job_id")
        assert rows["run_count"].to_list() == [1, 9, 1]
        assert rows["time_limit_s"].to_list() == [1800.0, None, None]
        assert rows["comment"].to_list() == ["fs=scratch"] * 3
        waits_s = (rows["expected_start_at"] - rows["submitted_at"]).dt.total_seconds().to_list()
        assert (waits_s[0], waits_s[2]) == (None, 3600)
        # the text is equal except for the cluster and the eligible time
        told_in_text = subprocess.run(
            ["squeue", "--all", f"--format={squeue.FORMAT}"],
            check=True,
            capture_output=True,
            env=os.environ | {"TZ": "UTC"},
        )
        text = tmp_path / "squeue-1772366400"
        text.write_bytes(told_in_text.stdout)
        again = batches(text)[0].sort("job_id")
        same = [name for name in rows.columns if name not in ("observed_at", "cluster", "eligible_at", "line")]
        assert again.select(same).equals(rows.select(same))
