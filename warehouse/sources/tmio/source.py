"""Read TMIO traces, FTIO's input: the I/O phases of ranks as JSON, JSON Lines or MessagePack, and FTIO's own JSON.

A phase covers a rank's I/O from its start until the rank continued, which is one request or several that were started
together. A phase lands as one request. TMIO does not record the ranks of phases, files or offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source

_MODES = rb"(?:read|write)_(?:sync|async(?:_[tb])?)"
_JSON = re.compile(
    rb'"(?:' + _MODES + rb')"\s*:\s*\{|"io_time"\s*:\s*\{\s*"delta_t_|"(?:b_rank_avr|b_overlap_avr|b_ind)"\s*:\s*\['
)
_BLANK = b" \t\r\n"
#: pattern of an array with fewer than 65,536 members that starts with the name of a mode
_PACKED = re.compile(
    rb"(?:[\x90-\x9f]|\xdc..)[\xa7\xa9\xaa\xab](?:read_sync|write_sync|read_async|write_async|io_time)", re.S
)


def sniff(head: Head) -> bool:
    """Recognize a JSON object with a TMIO mode, or a MessagePack array that starts with one."""
    start = head.start.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    return (start.startswith(b"{") and _JSON.search(start) is not None) or _PACKED.match(head.start) is not None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one traced run; consecutive flushes never repeat phases."""
    from iosig.warehouse.sources.tmio import requests

    return requests.read(path)


SOURCE = Source(
    name="tmio",
    doc="TMIO or FTIO trace (JSON, JSON Lines or MessagePack) of a program's I/O phases.",
    kind="traces",
    sniff=sniff,
    read=read,
    precedence=5,
)
