"""List impossible values, and missing or extra fields, of each format: the rows of a table.

A change is a part of the sample (its last occurrence is replaced), replacements (tried separately) and the expected
result of each.
"""

from __future__ import annotations

from tests.warehouse.sources.samples import Expected, T, changed, lost, none, refused, same

Change = tuple[str, tuple[str, ...], Expected]

_NO_NUMBERS = ("-4", "nan", "inf", "1e400", "8.5", "many")
_NO_TIMES = ("soon", "-1", "inf", "1e400", "1772366402000", "2026-02-30T00:00:00Z", "2026-03-01T25:00:02Z")
_FAR_TIMES = ("1960-01-01T00:00:00Z", "2300-01-01T00:00:00Z")
_NO_BYTES = ("81x2", "8192.5", "-8192", "1e400", "99999999999999999999")
_POLL = f"{T + 180},ctlc,3.5,2"
_EVENT = "io_node,io1,0,7,send,s1,1.5,1.75,100,write,,"
_SWF = "2 2 1460 16 128 -1 -1 128 -1 -1 1 88 2 3 1 5 -1 -1"
_LUSTRE = "lustre_job_write_bytes_total"


def _each(form: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(form.replace("{}", value) for value in values)


CHANGES: dict[str, list[Change]] = {
    "sacct": [
        ("|bob|main|8|", _each("|bob|main|{}|", (*_NO_NUMBERS, "9" * 14)), lost(1, 1, "number of nodes is given as")),
        ("8|2026-03-01T12:00:02Z", _each("8|{}", _NO_TIMES), lost(1, 1, "start time .* is not a time")),
        ("8|2026-03-01T12:00:02Z", _each("8|{}", _FAR_TIMES), lost(1, 1, "outside 1970 to 2261")),
        ("2|bob|", ("|bob|",), lost(1, 1, "no job id")),
        ("|bob|main|", ("|bob|main|more|",), lost(1, 1, "9 fields; the header has 8")),
        ("|bob|main|", ("|bob|",), lost(1, 1, "7 fields; the header has 8")),
        ("JobID|User", ("JobID",), none(3, "8 fields; the header has 7")),
        ("JobID|User", ("JobNo|User",), none(4, "no header with JobID")),
        # an absent column is unknown, and only the job id is required
        ("Start|End", ("Start|Start", "Begin|End"), changed(0)),
    ],
    "squeue": [
        ("2026-03-01T11:00:02", _NO_TIMES, lost(1, 1, "submit time .* is not a time")),
        ("2026-03-01T11:00:02", _FAR_TIMES, lost(1, 1, "outside 1970 to 2261")),
        ("|30:00|4|Priority|icon\n3", ("|-1|4|Priority|icon\n3", "|nan|4|Priority|icon\n3"), lost(1, 1, "a duration")),
        ("|30:00|4|Priority|icon\n3", _each("|30:00|{}|Priority|icon\n3", _NO_NUMBERS), lost(1, 1, "number of nodes")),
        ("|30:00|4|Priority|icon\n3", ("|4|Priority|icon\n3",), lost(1, 1, "other fields than the header's 11")),
        # the last field may hold the delimiter
        ("|30:00|4|Priority|icon\n3", ("|30:00|4|Priority|x|icon\n3",), changed(0)),
        ("2|bob", ("|bob",), lost(1, 1, "no job id")),
        ("|PENDING|2026-03-01T11:00:02", ("|BUSY|2026-03-01T11:00:02",), lost(1, 1, "BUSY is not one of Slurm's")),
        ("JOBID", ("ID",), none(4, "no header precedes it")),
        ("STATE", ("STEIT",), refused("lacks JOBID or STATE")),
        (f"{T}\n", ("17723664x0\n", "9999999999\n"), none(4, "The time of the query")),
    ],
    "pbs": [
        ("03/01/2026 13:00:02", ("garbage 13:00:02", "03/01/2026 13:00", ""), lost(1, 1, "not an accounting record")),
        # the end of the run is given elsewhere
        ("03/01/2026 13:00:02", ("13/41/2026 13:00:02",), same()),
        ("exec_host=cn1/0*8+cn2/0*8", ("Resource_List.nodect=-1",), lost(1, 1, "number of nodes is given as -1")),
        (";E;2.pbs", (";X;2.pbs",), lost(1, 1, "record type X does not exist")),
        (";E;2.pbs", (";E;",), lost(1, 1, "no job id")),
        (f"start={T + 2}", _each("start={}", (*_NO_TIMES[:5], "nan", "99999999999")), lost(1, 1, "is not a time")),
        ("user=bob jobname=icon", ("user=bob jobname=my icon", "user=bob jobname"), lost(1, 1, "not key=value")),
        ("user=bob", ("user=bob Exit_status=ok",), lost(1, 1, "exit status ok is not a number")),
    ],
    "swf": [
        (_SWF, (_SWF.rpartition(" ")[0],), lost(1, 1, "17 fields where the format has 18")),
        (_SWF, (f"{_SWF} 1",), lost(1, 1, "19 fields where the format has 18")),
        ("16 128 -1 -1 128 -1 -1 1 88", _each("16 {} -1 -1 128 -1 -1 1 88", ("many", "nan", "inf")),
         lost(1, 1, "not a number")),
        ("16 128 -1 -1 128 -1 -1 1 88", ("16 1.5 -1 -1 128 -1 -1 1 88",), lost(1, 1, "must be a whole number")),
        ("16 128 -1 -1 128 -1 -1 1 88", ("16 -5 -1 -1 128 -1 -1 1 88",), lost(1, 1, "number of tasks is given as -5")),
        (_SWF, _each(_SWF.replace("1460", "{}"), ("-3", "1e30", "1e400")), lost(1, 1, "negative, or longer than")),
        (_SWF, (_SWF.replace("1460", "9999999999"),), lost(1, 1, "outside 1970 to 2261")),
        ("1 88 2", ("9 88 2",), lost(1, 1, "status 9 does not exist")),
        (_SWF, (f"9{_SWF[1:].replace('1 88', '2 88')}",), lost(1, 1, "line of the job does not precede it")),
        (_SWF, (f"-1{_SWF[1:]}",), lost(1, 1, "no job id")),
        (f": {T}", (": UNKNOWN", ": -1", ": ", ": 1e9"), refused("start of the log is unknown")),
    ],
    "sacct-json": [
        ('"user": "ann"', ('"user": true', '"user": ["a"]', '"user": {}'), lost(2, 2, "user is not text|its job")),
        ('"user": "ann"', ('"user": "\\ud800"',), lost(2, 2, "user is not valid Unicode|its job")),
        ('"user": "ann", "name"', ('"user\\ud800": "ann", "name"',), changed(0)),
        ('"allocation_nodes": 2', _each('"allocation_nodes": {}', ("-4", "1e400", "NaN", "1" * 30)),
         lost(1, 1, "number of nodes is given as")),
        ('"time": {"elapsed": 600', ('"time": "soon", "x": {"elapsed": 600',), lost(2, 2, "time is not an object|its")),
        ('"steps": [', ('"steps": 5, "x": [',), lost(2, 1, "steps is not a list")),
        (f'"start": {T}', _each('"start": {}', ('"soon"', "NaN", "1e30", "-1", "1e400", f"{T}000")),
         lost(1, 1, "is not a time")),
        (f'"start": {T}', ('"start": {"set": true, "number": {}}',), lost(1, 1, "time.start is not a number")),
        ('["COMPLETED"]', ('["EXPLODED"]',), lost(1, 1, "EXPLODED is not one of Slurm's")),
        ('"job_id": 3', ('"job_id": null', '"job_id": ""', '"no": 3'), lost(2, 2, "no job id")),
        ('"jobs"', ('"job"', '"jobs": 5, "x"'), refused("no list of jobs")),
        # Slurm may report errors and still list jobs
        ('"errors": []', ('"errors": [{"error": "no database"}]',), same()),
    ],
    "squeue-json": [
        ('"user_name": "ann"', ('"user_name": ["ann"]', '"user_name": true'), lost(1, 1, "user_name is not text")),
        ('"user_name": "ann"', ('"user_name": "\\ud800"',), lost(1, 1, "not valid Unicode")),
        ('"time_limit": 30', ('"time_limit": "1:00"', '"time_limit": -30'), lost(1, 1, "not a number of minutes")),
        ('"job_state": "PENDING"', ('"job_state": "BUSY"',), lost(1, 1, "BUSY is not one")),
        (f'"submit_time": {T - 60}', ('"submit_time": {"number": {}}',), lost(1, 1, "submit_time is not a number")),
        (f'"submit_time": {T - 60}', _each('"submit_time": {}', ("1e400", "-1", f"{T}000")),
         lost(1, 1, "is not a time")),
        ('"node_count": 4', _each('"node_count": {}', ("-4", "1e30", "NaN")), lost(1, 1, "number of nodes")),
        ('"job_id": 3', ('"job_id": null', '"no": 3'), lost(1, 1, "no job id")),
        ('"jobs"', ('"job"',), refused("no list of jobs")),
        ('"errors": []', ('"errors": [{"error": "no controller"}]',), same()),
    ],
    "polls-csv": [
        (_POLL, (f"{T + 180},ctlc,x,2", f'{T + 180},ctlc,"1,001",2'), lost(1, 1, "is not a number")),
        (_POLL, (f"{T + 180},ctlc,-3,2",), lost(1, 1, "read_bytes_per_s is below 0")),
        (_POLL, _each(f"{T + 180},ctlc,{{}},2", ("nan", "inf", "1e400")), lost(1, 1, "not a finite number")),
        (_POLL, (f"{T + 180},ctlc,3.5",), lost(1, 1, "3 fields where 4")),
        (_POLL, (f"{T + 180},ctlc,3.5,2,5",), lost(1, 1, "5 fields where 4")),
        (_POLL, _each("{},ctlc,3,2", (*_NO_TIMES[:5], "yesterday")), lost(1, 1, "is not a time")),
        (_POLL, _each("{},ctlc,3,2", _FAR_TIMES), lost(1, 1, "outside 1970 to 2261")),
        (_POLL, (",ctlc,3,2",), lost(1, 1, "polled_at is missing")),
        (_POLL, (f"{T + 180},,3,2", f"{T + 180}, ,3,2"), lost(1, 1, "controller is missing")),
        (_POLL, (f'{T + 180},"ctlc,3,2',), lost(1, 1, "quotes do not match")),
        # an empty rate is a missing poll
        (_POLL, (f"{T + 180},ctlc,,2",), changed(0)),
        ("controller", ("kontroller",), refused("no column controller")),
        ("polled_at,", ("polled_at,controller,",), refused("controller more than once")),
    ],
    "series": [
        ("20,77", ("20,x",), changed(-1, 1, "is not a number")),
        ("20,77", ("20,-7", "20,nan", "20,inf", "20,1e400"), changed(-1, 1, "non-negative number")),
        ("20,77", ("20",), changed(-1, 1, "1 fields where 2")),
        ("20,77", ("20,77,1",), changed(-1, 1, "3 fields where 2")),
        ("20,77", ("x,77", "nan,77", "inf,77", "1e400,77"), changed(-1, 1, "not a number")),
        ("20,77", ("-5,77", "10,77"), changed(-1, 1, "not later than all earlier")),
        # the counter was reset or retracted bytes
        ("20,77", ("20,3", "20,0"), changed(0)),
        ("time_s,write_bytes", ("time_s,write_bytes,write_bytes",), refused("more than once")),
    ],
    "request-events-csv": [
        (_EVENT, _each("io_node,io1,0,7,send,s1,{},1.75,100,write,,", ("x", "nan", "1e400")),
         lost(1, 1, "not a number")),
        (_EVENT, ("io_node,io1,0,7,send,s1,1.5,1.25,100,write,,",), lost(1, 1, "ends before it begins")),
        (_EVENT, ("io_node,io1,-1,7,send,s1,1.5,1.75,100,write,,",), lost(1, 1, "rank -1 is negative")),
        (_EVENT, ("io_node,io1,1e400,7,send,s1,1.5,1.75,100,write,,",), lost(1, 1, "is not a number")),
        (_EVENT, _each("io_node,io1,0,7,send,s1,1.5,1.75,{},write,,", ("-100", "inf", "nan", "1e400")),
         lost(1, 1, "non-negative number|number of at least 0")),
        (_EVENT, ("io_node,io1,0,7,send,s1,1.5,1.75,100,sideways,,",), lost(1, 1, "`sideways` is unknown")),
        (_EVENT, ("nowhere,io1,0,7,send,s1,1.5,1.75,100,write,,",), lost(1, 1, "position of the layer `nowhere`")),
        (_EVENT, ("io_node,io1,0,,send,s1,1.5,1.75,100,write,,",), lost(1, 1, "request_id is missing")),
        (_EVENT, (f"{_EVENT}maybe",), lost(1, 1, "neither true nor false")),
        (_EVENT, (_EVENT[:-1],), lost(1, 1, "11 fields where 12")),
        (_EVENT, (f"{_EVENT},1",), lost(1, 1, "13 fields where 12")),
        ("end_s", ("ceased_s",), refused("no column end_s")),
    ],
    "jobstats": [
        ("snapshot_time:   172", ("snapshot_time:   x72", "snapshot_time:   -72"),
         lost(1, 1, "not in Lustre's format")),
        ("samples:           2", ("samples:          -2", "samples:         nan"),
         lost(1, 1, "not in Lustre's format")),
        ("sum:             8192", _each("sum: {}", ("9" * 20, "nan", "-8192", "8192.5")),
         lost(1, 1, "not in Lustre's format")),
        ("job_id:          j3", ('job_id:          "j3',), lost(1, 1, "not in Lustre's format")),
        ("  punch", (" \0punch",), lost(1, 1, "not in Lustre's format")),
        ("unit: bytes, min:     4096", ("unit: reqs, min:     4096",), lost(1, 1, "not in Lustre's format")),
        ("  write: ", ("  punch: ",), lost(1, 1, "a counter more than once")),
        ("  snapshot_time:   1723114652.000000000 secs.nsecs\n", ("",), lost(1, 1, "no snapshot_time")),
        ("  punch:           { samples:          85, unit: usecs", ("  # { samples:          85, unit: usecs",),
         lost(1, 1, "not in Lustre's format")),
        ("obdfilter.", ("ost.",), refused("no job statistics")),
        (f"{T}\n", ("soon\n", "2300-01-01T00:00:00Z\n"), changed(0, 1, "nor a time")),
    ],
    "mmpmon": [
        ("_bw_ 5 ", ("_bw_ -5 ", "_bw_ 5.5 ", "_bw_ nan ", "_bw_ 1e400 ", "_bw_ ", "_bv_ 5 "),
         lost(1, 1, "not in mmpmon's")),
        ("_bw_ 5 ", ("_bw_ 9999999999999999999 ",), lost(1, 1, "larger than 2\\^63")),
        ("_t_ 1579358234", ("_t_ 17", "_t_ 99999999999", "_t_ -5"), lost(1, 1, "not in mmpmon's")),
        (" _iu_ 6", ("", " _iu_ 6 _ju_ 7"), lost(1, 1, "not in mmpmon's")),
        ("_tu_ 53212", ("_tu_ 5321200",), lost(1, 1, "not in mmpmon's")),
        ("_fs_io_s_ ", ("fs_io_s_ ",), lost(1, 1, "not in mmpmon's")),
        ("_rc_ 0", ("_rc_ x",), lost(1, 1, "not in mmpmon's")),
        # mmpmon reports this for a file system that is not mounted
        ("_rc_ 0", ("_rc_ 1",), lost(1)),
    ],
    "influx-line": [
        ("write_bytes=4096i", _each("write_bytes={}i", _NO_BYTES), lost(1, 1, "non-negative integer")),
        ("write_bytes=4096i", ("write_bytes=nan", "write_bytes=8192.5", 'write_bytes="8192"'),
         lost(1, 1, "non-negative integer")),
        ("write_bytes=4096i", ("write_bytes4096i",), lost(1, 1, "are damaged")),
        ("jobid=j3,", ("",), lost(1, 1, "no tag for the job")),
        ("jobstats_create=1i", ("create=1i",), lost(1, 1, "do not belong to a job")),
        ("jobstats_create=1i,", ("",), lost(1, 1, "fewer counters")),
        ("000000000\n", ("00000000\n", "0000000000\n", "soon\n"), lost(1, 1, "no time")),
        (",name=fs1-OST0001 ", (",nome=fs1-OST0001 ",), lost(1, 1, "has no target")),
        ("host=oss1,", ("host=oss1,,", "host=oss1,host=oss2,"), lost(1, 1, "are damaged")),
        ("lustre2,", ("lustre2 ,",), lost(1, 1, "are damaged")),
        # an unknown measurement belongs to another collector
        ("lustre2,", ("lu\0tre2,",), lost(1)),
    ],
    "ldms-csv": [
        (",4096,", _each(",{},", (*_NO_BYTES, "nan", "")), lost(1, 1, "non-negative integer")),
        (",4096,", (",4096,4096,",), lost(1, 1, "20 fields where 19")),
        (",4096,", (",",), lost(1, 1, "18 fields where 19")),
        ("1723114647.000000", ("x.000000", "17.000000", "99999999999.000000", "-5.000000"),
         lost(1, 1, "The time is not in")),
        ("000000,0", ("000000,1", "000000,"), lost(1, 1, "two different times")),
        ("fs1-OST0001", ("",), lost(1, 1, "has no target")),
        ("1723114647.0", ("#1723114647.0",), lost(1, 1, "header is damaged")),
        ("job_id,", ("job_ie,",), refused("one of job_id and snapshot_time")),
        ("snapshot_time", ("snapshot_tine",), refused("one of job_id and snapshot_time")),
        ("ost,", ("osd,",), refused("None of the columns")),
        ("punch", ("sync",), refused("more than once")),
    ],
    "prometheus-prom": [
        ("} 8192", _each("} {}", (*_NO_BYTES, "NaN", "+Inf")), lost(1, 2, "non-negative integer|fewer counters")),
        ('jobid="j2",operation', ('jobid=j2",operation',), lost(1, 2, "quotes|fewer counters")),
        ("lustre_up 1\n", ("lustre_up one\n",), same(1, "not a metric with a value")),
        ("lustre_up 1\n", ("lvstre_up 1\n",), same(1, "No line declares")),
        ("lustre_up 1\n", ('lustre_read_bytes_total{component="osd",target="a"} 1\n',), same(1, "component `osd`")),
        ("lustre_up 1\n", ('lustre_job_read_bytes_total{component="ost",target="a"} 1\n',),
         same(1, "no label for the job")),
        ("lustre_up 1\n", (f'{_LUSTRE}{{component="ost",target="a",jobid="j"x}} 1\n',), same(1, "a non-negative")),
        ("lustre_up 1\n", (f'{_LUSTRE}{{target;"a",jobid="j"}} 1\n',), same(1, "labels of the line")),
        ("lustre_up 1\n", (f'{_LUSTRE}{{jobid="j"}} 1\n',), same(1, "no label for its target")),
    ],
    "prometheus-json": [
        (f'[{T + 10}, "9"]', _each(f'[{T + 10}, "{{}}"]', ("-9", "9.5", "NaN", "1e400", "x")),
         lost(2, 1, "non-negative integer")),
        (f'[{T + 10}, "9"]', _each('[{}, "9"]', ("-5", "1e400", '"soon"', "NaN", f"{T}000000")),
         lost(2, 1, "non-negative integer")),
        (f'[{T + 10}, "9"]', (f"[{T + 10}]", "5"), lost(2, 1, "not a series of values")),
        ('"jobid": "j3"', ('"jobid": 5',), lost(2, 1, "not a series of values")),
        ('"jobid": "j3", ', ("",), lost(2, 1, "no label for the job")),
        ('"fs": "lake"', ('"fs": "lake\\ud800"',), lost(2, 1, "The label fs is not valid Unicode")),
        (f'"__name__": "{_LUSTRE}", ', ("",), lost(2, 1, "no name")),
        ('"result": [', ('"results": [',), refused("no list of data.result")),
        ('"status": "success"', ('"status": "error"',), same()),
    ],
    "mmperfmon": [
        ("3 2019-05-15-12:03:00", ("3 2019-05-15-25:03:00",), lost(2, 1, "is not a time")),
        ("3 2019-05-15-12:03:00", ("3 2300-05-15-12:03:00", "3 1960-05-15-12:03:00"),
         lost(2, 1, "outside 1970 to 2261")),
        ("3 2019-05-15-12:03:00", ("3 2019-05-15 12:03:00",), lost(2, 1, "not a row of a query")),
        ("3 2019-05-15-12:03:00", ("2 2019-05-15-12:03:00",), lost(2, 1, "not greater")),
        ("12:03:00      1200", _each("12:03:00      {}", ("120x", "-120", "nan", "1e400")), lost(2, 1, "non-negative")),
        ("12:03:00      1200", ("12:03:00",), lost(2, 1, "1 cells where 2")),
        ("12:03:00      1200", ("12:03:00   1200 kB",), lost(2, 1, "3 cells where 2")),
        # a query with unknown columns is refused completely, because values would get wrong names
        (" 2:\tnsd1", (" 4:\tnsd1", " x:\tnsd1"), refused("None of the columns")),
        ("d1|gpfs_nsdds_bytes_read", ("d1|gpfs_nsdds_bytes_reed",), refused("None of the columns")),
        ("Timestamp gpfs_nsdds_bytes_read", ("Timestamp",), refused("None of the columns")),
        ("\nRow ", ("\nRaw ",), refused("None of the columns")),
    ],
    "dftracer": [
        ('"ret": 8192', _each('"ret": {}', ("true", "1.5", '"text"', "1e3", "[1]", '{"a": 1}', '"0x10"', str(1 << 63),
         "-" + str((1 << 63) + 1), "1e400", f'"{"9" * 400}"')), lost(1, 1, "is not a number")),
        ('"ret": 8192', ('"ret": null', '"rat": 8192'), lost(1, 1, "but not the bytes moved")),
        ('"ret": 8192', (f'"ret": {1 << 62}',), lost(1, 1, "more bytes than any file")),
        # a failed call moved no bytes
        ('"ret": 8192', ('"ret": -5',), changed(0)),
        ('"ret": 8192', ('"ret": NaN', '"ret": 8192, "ret": 1', '"ret\\ud800": 8192'),
         lost(1, 1, "The line is not an event")),
        ('"ret": 8192', ('"ret": ' + "[" * 100_000 + "]" * 100_000,), lost(1, 1, "nested too deeply")),
        ('"ts": 1700000000000050', _each('"ts": {}', ("-5", "1700000000", "9" * 18)),
         lost(1, 1, "not in microseconds")),
        ('"ts": 1700000000000050', _each('"ts": {}', ('"soon"', "1e400", "9" * 19, "true")),
         lost(1, 1, "is not a number")),
        ('"ts": 1700000000000050', ('"t": 5', '"ts": null'), lost(1, 1, "has no `ts`")),
        ('"dur": 10, "ph": "X", "args": {"hhash": 14601, "fhash": 36642, "ret": 8192',
         ('"dur": -1, "ph": "X", "args": {"hhash": 14601, "fhash": 36642, "ret": 8192',),
         lost(1, 1, "duration is negative")),
        ('"name": "write", "cat"', ('"name": 5, "cat"', '"nome": "write", "cat"'), lost(1, 1, "`name` is not text")),
        ('"value": "0"', ('"value": "first"',), same(1, "rank is not a number")),
    ],
    "tmio-jsonl": [
        ('"t_rank_e": [', ('"t_rank_e": [NaN, ', '"t_rank_e": [1.0, '), lost(6, 1, "differ in length")),
        ('"write_sync": {', ('"write_sync": 7, "x": {',), lost(6, 1, "write_sync is not an object")),
        ('"bandwidth": {', ('"bandwidth": [1], "x": {',), lost(6, 1, "bandwidth of write_sync is not an object")),
        ('"t_rank_e"', ('"t_rank_f"',), lost(6, 1, "list `t_rank_e` is missing")),
        ('"b_rank_avr": ', ('"b_rank_avr": ' + "[" * 100_000 + "]" * 100_000 + ', "x": ',),
         lost(6, 1, "nested too deeply")),
        ('"io_time"', ('"write_sync": {}, "io_time"',), lost(6, 1, "twice")),
        # an unknown name belongs to another tool
        ('"write_sync"', ('"write_sink"',), lost(6)),
    ],
    "recorder-txt": [
        ("2.0 2.5", ("-2.0 2.5", "nan 2.5", "2.0 inf", "2.0 1e400", "soon 2.5"), lost(1, 1, "not in recorder2text's")),
        ("2.0 2.5", ("2.5 2.0",), lost(1, 1, "ends before it starts")),
        ("2.0 2.5", ("0.5 2.5",), lost(1, 1, "starts before the previous call")),
        ("2.0 2.5", ("2.0 1e12",), lost(1, 1, "beyond ten years")),
        ("pwrite 0 0 ( /a/f2", _each("pwrite {} ( /a/f2", ("0 5", "0 -1", "256 0", "-1 0", "x 0")),
         lost(1, 1, "not in recorder")),
        ("f2 %p 120 2 )", ("f2 %p 120 2",), lost(1, 1, "not in recorder2text's")),
        ("f2 %p 120 2", ("f2 %p many 2", "f2 %p"), changed(0, 1, "lack its file or its bytes")),
    ],
    # tests of the readers cover the other members of these two formats
    "predictions": [
        ('"request_count": 400', _each('"request_count": {}', ("1e400", "4.5", "true", "9" * 20)),
         lost(1, 1, "not an integer")),
        ('"request_count": 400', ('"request_count": -4',), lost(1, 1, "breaks the rule request_count_at_least_0")),
        ('"period_s": 8.75', ('"period_s": NaN', '"period_s": 1e400'), lost(1, 1, "(?:not a finite|not a) number")),
        ('"period_s": 8.75, ', ("",), lost(1, 1, "period_s is missing")),
        ('"is_final": false', ('"is_final": false, "more": 1',), lost(1, 1, "unknown members")),
    ],
    "extrapolations": [
        ('"process_count": 1000', _each('"process_count": {}', ("0", "-8", "1e400", "NaN")), refused("process_count")),
        ('"has_nested_calls": false', ('"x": 1',), refused("has_nested_calls")),
        ('"has_nested_calls": false', ('"has_nested_calls": false, "x": 1',), refused("has more than")),
    ],
}  # fmt: skip
