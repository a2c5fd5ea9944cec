from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.jobs.records import FINAL_STATES, SHORT_STATES
from iosig.warehouse.sources.jobs.sacct import SOURCE
from iosig.warehouse.sources.protocol import HEAD_BYTES, Head
from iosig.warehouse.store.landing import find_source
from tests.budget import examples
from tests.warehouse.sources import batch_reading
from tests.warehouse.sources.batch_reading import read_log, write_lines

STATES = JOB_RECORDS.column("state").choices
HEADER = "JobID|User|State|Start|End"
FORM_21_LINE = (
    "3456|rush|gpu|chem|chem|101|alice|2001|1500000000|1500000001|1500000100|1500003700|0:0|COMPLETED|2|24|24|"
    "cn[01-02]|relax|02:00:00|3000Mc"
)

FORM_26_LINE = (
    "165381|165381|phillips|crumpet|qos|chaff|chaff|45789|chaff|196224|2016-12-27T20:12:01|2016-12-27T20:12:01|"
    "2016-12-27T20:12:01|2017-01-01T20:12:27|5-00:00:26|1:0|TIMEOUT|8|64|64|8000Mn|cpu=64|billing=64|5-00:00:00|"
    "cpn-[01-08]|my"
)


read_lines = partial(batch_reading.read_lines, SOURCE)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# ---- real logs


def test_all_24_edison_steps_are_read(shared_data: Path) -> None:
    path = shared_data / "jobs" / "edison-2018-02-09.sacct"
    assert SOURCE.sniff(read_head(path))
    rows, refused = read_log(SOURCE, path)
    assert refused.is_empty()
    assert rows.height == 24
    assert rows["line"].to_list() == list(range(2, 26))
    assert rows["job_id"][:8].to_list() == [f"8438946.{step}" for step in range(8)]
    on_scratch1 = rows.filter(pl.col("comment") == "fs=scratch1")
    assert list(zip(on_scratch1["started_at"], on_scratch1["ended_at"], strict=True)) == [
        (utc("2018-02-09T11:14:37"), utc("2018-02-09T11:15:15")),
        (utc("2018-02-09T11:15:28"), utc("2018-02-09T11:16:17")),
        (utc("2018-02-09T11:16:24"), utc("2018-02-09T11:19:53")),
        (utc("2018-02-09T11:20:04"), utc("2018-02-09T11:20:50")),
        (utc("2018-02-09T11:20:57"), utc("2018-02-09T11:21:48")),
        (utc("2018-02-09T11:21:58"), utc("2018-02-09T11:22:49")),
        (utc("2018-02-09T11:22:56"), utc("2018-02-09T11:24:35")),
        (utc("2018-02-09T11:24:43"), utc("2018-02-09T11:26:16")),
    ]
    assert rows.select("node_count", "task_count", "state").unique().rows() == [(128, 2048, "COMPLETED")]
    assert rows["submitted_at"].null_count() == rows["cluster"].null_count() == 24


def test_all_11704_pozidriv_jobs_are_read(shared_data: Path) -> None:
    path = shared_data / "jobs" / "xdmod-pozidriv.sacct.gz"
    assert SOURCE.sniff(read_head(path))
    rows, refused = read_log(SOURCE, path)
    assert refused.is_empty()
    assert rows.height == rows["job_id"].n_unique() == 11_704
    assert dict(rows["state"].value_counts().rows()) == {
        "COMPLETED": 10_134,
        "FAILED": 1_007,
        "CANCELLED": 468,
        "PREEMPTED": 86,
        "TIMEOUT": 9,
    }
    assert rows.filter(pl.col("cancelled_by").is_not_null())["state"].unique().to_list() == ["CANCELLED"]
    assert rows["cancelled_by"].null_count() == 11_704 - 468
    assert rows["node_list"].null_count() == 419
    assert (
        rows["started_at"].null_count()
        == rows["ended_at"].null_count()
        == rows["task_count"].null_count() - 11_704
        == 0
    )
    first = rows.row(0, named=True)
    assert first["job_id"] == "977669"
    assert first["submitted_at"] == utc("2016-12-21T21:43:34")
    assert first["ended_at"] - first["started_at"] == timedelta(days=7, hours=20, minutes=39, seconds=39)
    assert (first["cluster"], first["partition"], first["account"], first["user"], first["node_count"]) == (
        "pozidriv",
        "croutons",
        "calla",
        "turdo",
        1,
    )


# ---- recognition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("JobID|User|State\n1|a|COMPLETED\n", True),
        ("State|JobIDRaw|\nCOMPLETED|1|\n", True),
        ("sacct: warning: clock skew\njobid|state\n1|CD\n", True),
        (FORM_21_LINE + "\n", True),
        (FORM_21_LINE + "|\n", True),
        (FORM_26_LINE + "\n", True),
        (FORM_26_LINE.rpartition("|")[0] + "|\n", True),
        (FORM_26_LINE + "|more\n", True),
        (FORM_21_LINE.replace("1500000100", "Unknown").replace("COMPLETED", "CANCELLED by 7") + "\n", True),
        (FORM_21_LINE.replace("COMPLETED", "17") + "\n", False),
        (FORM_21_LINE.replace("1500000100", "fast") + "\n", False),
        ("|".join(["1"] * 26) + "\n", False),
        ("|".join(["1"] * 21) + "\n", False),
        ("JobID User State\n1 a COMPLETED\n", False),
        ("| JobID | State |\n|---|---|\n", False),
        ("JobID|whatever\n1|2\n", False),
        ("polled_at,controller,read_bytes_per_s\n", False),
        ("0.5 1024\n1.0 2048\n", False),
        ('{"jobs": []}', False),
        ("", False),
    ],
)
def test_only_sacct_is_recognized(text: str, expected: bool) -> None:
    assert SOURCE.sniff(Head("log", text.encode())) is expected


def test_line_truncated_by_end_of_head_is_ignored() -> None:
    lines = (FORM_21_LINE + "\n").encode()
    start = (lines * (HEAD_BYTES // len(lines) + 1))[:HEAD_BYTES]
    assert SOURCE.sniff(Head("log", start))


# ---- fields


def test_fields_are_found_by_name_in_any_order_and_case(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        "COMMENT|NTasks|end|Start|QOS|JobName|State|JobID|AllocNodes|NNodes|Submit|ExitCode|NodeList|Cluster|Account|User|Partition",
        "fs=x|64|2020-01-01T01:00:00|2020-01-01T00:00:00|normal|lmp|CD|9_4.0|2|4|2019-12-31T23:00:00|0:9|n[1-2]|c|a|u|p",
    )
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": "c",
        "job_id": "9_4.0",
        "user": "u",
        "account": "a",
        "job_name": "lmp",
        "partition": "p",
        "node_count": 2,
        "task_count": 64,
        "submitted_at": utc("2019-12-31T23:00:00"),
        "started_at": utc("2020-01-01T00:00:00"),
        "ended_at": utc("2020-01-01T01:00:00"),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": "0:9",
        "node_list": "n[1-2]",
        "has_shared_nodes": None,
        "comment": "fs=x",
        "source_file": "",
        "line": 2,
    }


def test_job_ids_of_every_form_are_kept(tmp_path: Path) -> None:
    job_ids = ["1", "123_4", "123_[5-9%2]", "123.0", "123.batch", "123.extern", "123+1", "123+1.0"]
    rows, _ = read_lines(tmp_path, "JobID|State", *(f"{job_id}|COMPLETED" for job_id in job_ids))
    assert rows["job_id"].to_list() == job_ids


def test_raw_job_id_replaces_missing_job_id(tmp_path: Path) -> None:
    rows, _ = read_lines(
        tmp_path, "JobIDRaw|State", "7|COMPLETED", "JobIDRaw|JobID|State", "8|5_3|COMPLETED", "9||FAILED"
    )
    assert rows["job_id"].to_list() == ["7", "5_3", "9"]


def test_processors_are_not_tasks(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, "JobID|NCPUS|ReqCPUS|AllocCPUS|State", "7|64|64|64|COMPLETED")
    assert rows["task_count"].to_list() == rows["node_count"].to_list() == [None]


def test_forms_of_26_and_21_fields_and_headers_may_be_mixed(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path, FORM_21_LINE, FORM_26_LINE + "|odd|name", HEADER, "1|bob|RUNNING|2020-01-01T00:00:00|Unknown"
    )
    assert refused.is_empty()
    assert rows["job_id"].to_list() == ["3456", "165381", "1"]
    assert rows["job_name"].to_list() == ["relax", "my|odd|name", None]
    assert rows["node_list"].to_list() == ["cn[01-02]", "cpn-[01-08]", None]
    assert rows["state"].to_list() == ["COMPLETED", "TIMEOUT", "RUNNING"]
    assert rows["ended_at"].to_list() == [utc("2017-07-14T03:41:40"), utc("2017-01-01T20:12:27"), None]
    assert rows["user"].to_list() == ["alice", "chaff", "bob"]


def test_header_within_log_changes_order_of_fields(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path, "JobID|User|State", "1|ann|COMPLETED", "JobID|User|State", "2|bob|FAILED", "State|JobID", "TIMEOUT|3"
    )
    assert refused.is_empty()
    assert rows.select("line", "job_id", "user", "state").rows() == [
        (2, "1", "ann", "COMPLETED"),
        (4, "2", "bob", "FAILED"),
        (6, "3", None, "TIMEOUT"),
    ]


def test_log_with_repeated_headers_is_read(tmp_path: Path) -> None:
    lines = [line for number in range(3000) for line in ("JobID|State", f"{number}|COMPLETED")]
    rows, refused = read_lines(tmp_path, *lines)
    assert refused.is_empty()
    assert rows["line"].to_list() == list(range(2, 6001, 2))


def test_parsable_output_with_trailing_delimiters_is_read(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, "JobID|State|", "1|COMPLETED|", "2|FAILED")
    assert refused.is_empty()
    assert rows["state"].to_list() == ["COMPLETED", "FAILED"]


def test_delimiter_in_last_free_text_field_is_kept(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, "JobID|State|Comment", "1|COMPLETED|a|b", "2|COMPLETED|a|b|c", "3|COMPLETED|a")
    assert rows["comment"].to_list() == ["a|b", "a"]
    assert refused["line"].to_list() == [3]


@pytest.mark.parametrize("separator", ["^|^", "\t", ";", "@", ","])
def test_separator_is_inferred_from_header(tmp_path: Path, separator: str) -> None:
    lines = ["JobID|User|Start|JobName".replace("|", separator), "7|ann|2020-01-01T00:00:00|x".replace("|", separator)]
    assert SOURCE.sniff(read_head(write_lines(tmp_path, "# exported", "", *lines)))
    rows, refused = read_lines(tmp_path, "# exported", "", *lines)
    assert refused.is_empty()
    assert rows.select("job_id", "user", "started_at", "job_name").rows() == [("7", "ann", utc("2020-01-01"), "x")]


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("JobID|JobName|User|Comment", "2|crazy|name|u1|note"),
        ("JobID|Comment|JobName", "2|a|b|c"),
        ("JobID|JobName|User", "2|a|b|ann"),
        ("JobID,NodeList,State,JobName", "2,n[1,3],COMPLETED,a"),
    ],
)
def test_surplus_separator_is_refused_if_several_fields_may_have_it(tmp_path: Path, header: str, line: str) -> None:
    rows, refused = read_lines(tmp_path, header, line)
    assert rows.is_empty()
    assert refused["reason"].str.contains("fields; the header has").all()
    assert refused["remedy"].str.contains("may contain the separator").all()


@pytest.mark.parametrize(
    ("lines", "reason", "remedy"),
    [
        (["       JobID      User      State ", "------------ --------- ----------", "40   u1  COMPLETED"],
         "padded columns", "--parsable2"),
        (["1|2026-03-02T10:00:00|2026-03-02T11:00:00|COMPLETED|2|ok|u1"], "no header", "--noheader"),
        (["1|2026-03-02T10:00:00|2026-03-02T11:00:00|CANCELLED by 7|"] * 3, "no header", "--noheader"),
        (["sacct: error: Problem talking to the database: refused"], "Problem talking to the database: refused",
         "Export it again"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("format_name", [None, "sacct"])
def test_near_miss_is_refused_with_its_remedy(
    tmp_path: Path, lines: list[str], reason: str, remedy: str, format_name: str | None
) -> None:
    with pytest.raises(InputRefused, match=reason) as raised:
        find_source(write_lines(tmp_path, *lines), None, format_name)
    assert remedy in raised.value.remedy


def test_log_with_error_message_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="so it is incomplete: Problem talking"):
        read_lines(tmp_path, "JobID|State", "1|COMPLETED", "sacct: error: Problem talking to the database")


def test_empty_cells_are_null_and_only_job_id_is_required(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, HEADER, "1||||", " 2 | |  |None|", "|bob|COMPLETED||", "", "   ")
    assert rows.select("job_id", "user", "state", "started_at").rows() == [
        ("1", None, None, None),
        ("2", None, None, None),
    ]
    assert refused["reason"].to_list() == ["The record has no job id."]


def test_placeholders_for_no_nodes_are_null(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, "JobID|NodeList", "1|None assigned", "2|(null)", "3|", "4|n1")
    assert rows["node_list"].to_list() == [None, None, None, "n1"]


# ---- states


def test_state_words_of_slurm_are_kept(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, "JobID|State", *(f"1|{state}" for state in STATES))
    assert rows["state"].to_list() == list(STATES)
    rows, _ = read_lines(tmp_path, "JobID|State", *(f"1|{state.lower()}" for state in STATES))
    assert rows["state"].to_list() == list(STATES)


def test_short_states_are_expanded(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, "JobID|State", *(f"1|{short}" for short in SHORT_STATES))
    assert rows["state"].to_list() == list(SHORT_STATES.values())


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        *((name, "NO", False) for name in ("OverSubscribe", "Shared", "OVERSUBSCRIBE")),
        *(("OverSubscribe", word, True) for word in ("OK", "YES", "USER", "MCS")),
        *(("OverSubscribe", word, None) for word in ("", "(null)", "perhaps")),
        ("SubmitLine", "sbatch -N 2 --exclusive job.sh", False),
        ("SubmitLine", "sbatch job.sh --exclusive", False),
        ("SubmitLine", "sbatch --exclusive=user job.sh", True),
        ("SubmitLine", "sbatch --oversubscribe job.sh", True),
        ("SubmitLine", "sbatch --exclusive-of-nothing job.sh", None),
        ("SubmitLine", "sbatch -N 2 --wrap srun --exclusive a.out", None),
        ("SubmitLine", "sbatch job.sh", None),
    ],
)
def test_sharing_of_nodes_is_read_from_field_or_submit_line(
    tmp_path: Path, field: str, text: str, expected: bool | None
) -> None:
    rows, refused = read_lines(tmp_path, f"JobID|State|{field}", f"1|CD|{text}", "2|CD|")
    assert refused.is_empty()
    assert rows["has_shared_nodes"].to_list() == [expected, None]


def test_submit_line_of_a_step_concerns_processors_only(tmp_path: Path) -> None:
    header, line = "JobID|State|OverSubscribe|SubmitLine", "srun --exclusive a.out"
    rows, _ = read_lines(tmp_path, header, f"1|CD||{line}", f"1.0|CD||{line}", f"2|CD|OK|{line}")
    assert rows["has_shared_nodes"].to_list() == [False, None, True]


def test_cancelling_user_is_extracted_from_state(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, "JobID|State", "1|CANCELLED by 123", "2|CANCELLED", "3|CA by root")
    assert refused.is_empty()
    assert rows.select("state", "cancelled_by").rows() == [
        ("CANCELLED", "123"),
        ("CANCELLED", None),
        ("CANCELLED", "root"),
    ]


def test_unknown_states_are_refused(tmp_path: Path) -> None:
    odd = ["FINISHED", "CANCELLED by", "COMPLETED by 12", "C D", "12"]
    rows, refused = read_lines(tmp_path, "JobID|State", *(f"1|{state}" for state in odd), "2|COMPLETED")
    assert rows["job_id"].to_list() == ["2"]
    assert refused["reason"].to_list() == [f"The state {state} is not one of Slurm's." for state in odd]
    assert refused["raw"].to_list() == [f"1|{state}" for state in odd]


# ---- counts


def test_counts_may_have_units(tmp_path: Path) -> None:
    counts = {"0": 0, "128": 128, "2K": 2048, "1M": 1_048_576, "": None}
    rows, _ = read_lines(tmp_path, "JobID|NNodes", *(f"1|{text}" for text in counts))
    assert rows["node_count"].to_list() == list(counts.values())


def test_rounded_or_invalid_counts_are_refused(tmp_path: Path) -> None:
    odd = ["2.50K", "-1", "1e3", "many", "9999999999999999999999", "4G", "٤"]
    rows, refused = read_lines(tmp_path, "JobID|NNodes", *(f"1|{text}" for text in odd))
    assert rows.is_empty()
    assert refused["reason"].to_list() == [f"The number of nodes is given as {text}." for text in odd]
    rows, refused = read_lines(tmp_path, "JobID|NTasks", *(f"1|{text}" for text in odd))
    assert rows.is_empty()
    assert refused["reason"].to_list() == [f"The number of tasks is given as {text}." for text in odd]


# ---- times


def test_local_times_use_time_zone_and_ambiguous_times_are_refused(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        HEADER,
        "1|a|COMPLETED|2018-07-01T00:00:00|2018-07-01T01:00:00",
        "2|a|COMPLETED|2018-03-11T02:30:00|2018-03-11T04:00:00",
        "3|a|COMPLETED|2018-11-04T00:30:00|2018-11-04T01:30:00",
        zone="America/Los_Angeles",
    )
    assert rows.select("job_id", "started_at", "ended_at").rows() == [
        ("1", utc("2018-07-01T07:00:00"), utc("2018-07-01T08:00:00"))
    ]
    assert refused.select("line", "reason").rows() == [
        (3, "The start time 2018-03-11T02:30:00 does not exist in America/Los_Angeles: the clock skips it."),
        (4, "The end time 2018-11-04T01:30:00 occurs twice in America/Los_Angeles: the clock goes back."),
    ]
    assert "SLURM_TIME_FORMAT" in refused["remedy"][0]


def test_unknown_time_zone_raises_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Mars"):
        read_lines(tmp_path, HEADER, zone="Mars")


def test_end_is_computed_from_elapsed_time_only_in_final_states(tmp_path: Path) -> None:
    lines = [f"1|{state}|2020-01-01T00:00:00|1-00:00:01" for state in (*STATES, "")]
    rows, _ = read_lines(tmp_path, "JobID|State|Start|Elapsed", *lines)
    end = utc("2020-01-02T00:00:01")
    assert rows["ended_at"].to_list() == [end if state in FINAL_STATES else None for state in (*STATES, "")]


def test_suspended_time_is_added_and_elapsed_seconds_are_read(tmp_path: Path) -> None:
    rows, _ = read_lines(
        tmp_path,
        "JobID|State|Start|Elapsed|Suspended",
        "1|COMPLETED|2020-01-01T00:00:00|00:10:00|00:05:00",
        "JobID|State|Start|ElapsedRaw",
        "2|COMPLETED|2020-01-01T00:00:00|90",
        "3|COMPLETED|Unknown|90",
    )
    assert rows["ended_at"].to_list() == [utc("2020-01-01T00:15:00"), utc("2020-01-01T00:01:30"), None]


def test_given_end_takes_precedence_over_elapsed_time(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        "JobID|State|Start|End|Elapsed",
        "1|COMPLETED|2020-01-01T00:00:00|2020-01-01T00:20:00|00:10:00",
        "2|COMPLETED|2020-01-01T00:00:00|Unknown|00:10:00",
        "3|COMPLETED|2020-01-01T00:00:00|2020-01-01T00:20:00|nonsense",
    )
    assert refused.is_empty()
    assert rows["ended_at"].to_list() == [utc("2020-01-01T00:20:00"), None, utc("2020-01-01T00:20:00")]


def test_invalid_elapsed_time_is_refused_only_if_needed(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        "JobID|State|Start|Elapsed",
        "1|COMPLETED|2020-01-01T00:00:00|soon",
        "2|RUNNING|2020-01-01T00:00:00|soon",
    )
    assert rows["job_id"].to_list() == ["2"]
    assert "not a duration" in refused["reason"][0]


def test_computed_end_out_of_range_is_refused(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, "JobID|State|Start|Elapsed", "1|COMPLETED|2261-12-31T00:00:00|99999-00:00:00")
    assert rows.is_empty()
    assert refused["reason"].to_list() == ["The end time is outside 1970 to 2261."]


def test_start_after_end_is_left_to_quality_checks(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, HEADER, "1|a|COMPLETED|2020-01-02T00:00:00|2020-01-01T00:00:00")
    assert rows.height == 1


# ---- files


@pytest.mark.parametrize("content", ["", "\n\n", HEADER, HEADER + "\n" + HEADER + "\n"])
def test_log_without_records_yields_no_rows(tmp_path: Path, content: str) -> None:
    path = tmp_path / "log"
    path.write_text(content, encoding="utf-8")
    rows, refused = read_log(SOURCE, path)
    assert rows.is_empty()
    assert refused.is_empty()


# ---- properties

FIELD_OF = {
    "cluster": "Cluster",
    "user": "User",
    "account": "Account",
    "job_name": "JobName",
    "partition": "Partition",
    "node_count": "NNodes",
    "task_count": "NTasks",
    "submitted_at": "Submit",
    "started_at": "Start",
    "ended_at": "End",
    "state": "State",
    "exit_code": "ExitCode",
    "node_list": "NodeList",
    "comment": "Comment",
}
_texts = st.none() | st.text(st.characters(exclude_characters="|\n\r\x00", codec="utf-8"), min_size=1, max_size=12).map(
    str.strip
).filter(lambda text: text != "" and not text.isspace())
_instants = st.none() | st.datetimes(datetime(1975, 1, 1), datetime(2100, 1, 1)).map(
    lambda instant: instant.replace(microsecond=0, tzinfo=UTC)
)
_counts = st.none() | st.integers(0, 100_000)
_records = st.fixed_dictionaries(
    {
        **dict.fromkeys(("cluster", "user", "account", "job_name", "partition", "exit_code", "comment"), _texts),
        "job_id": st.integers(1, 10**7).map(str) | st.sampled_from(["12_3", "12_[4-9%2]", "12.0", "12.batch", "12+1"]),
        "node_list": st.none() | st.sampled_from(["nid00001", "nid[00001-00128]", "a,b[1,3]"]),
        **dict.fromkeys(("node_count", "task_count"), _counts),
        **dict.fromkeys(("submitted_at", "started_at", "ended_at"), _instants),
        "state": st.none() | st.sampled_from(STATES),
    }
)


def as_cell(value: object, epoch: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(int(value.timestamp())) if epoch else value.strftime("%Y-%m-%dT%H:%M:%S")
    return str(value)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_records_round_trip_with_any_fields_in_any_order(tmp_path: Path, data: st.DataObject) -> None:
    records = data.draw(st.lists(_records, min_size=1, max_size=8))
    chosen = data.draw(st.lists(st.sampled_from(sorted(FIELD_OF)), unique=True, min_size=1))
    names = data.draw(st.permutations(["job_id", *chosen]))
    epoch = data.draw(st.booleans())
    header = "|".join({"job_id": "JobID", **FIELD_OF}[name] for name in names)
    lines = ["|".join(as_cell(record[name], epoch) for name in names) for record in records]
    rows, refused = read_lines(tmp_path, header, *lines)
    assert refused.is_empty()
    assert rows.select(names).to_dicts() == [{name: record[name] for name in names} for record in records]
    absent = [name for name in FIELD_OF if name not in names]
    assert all(rows[name].null_count() == len(records) for name in absent)
