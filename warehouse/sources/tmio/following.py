"""Follow a growing TMIO trace from any position, across rotation, truncation and replacement.

A flush is a block of records that TMIO writes at one time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.files import FollowedFile, Piece, Position
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.sources.files.opening import compression
from iosig.warehouse.sources.protocol import get_input_name
from iosig.warehouse.sources.tmio import source
from iosig.warehouse.sources.tmio.parts import ARRAYS, BOM
from iosig.warehouse.sources.tmio.stream import StreamedFlush, TmioStream

#: possible first bytes of an uncompressed trace
_STARTS = ARRAYS | {b"{", b" ", b"\t", b"\r", b"\n", BOM[:1]}


class TmioFeed:
    """The flushes of one followed TMIO trace, JSON Lines or MessagePack.

    A flush's position is the end of the flush, at which a reader can resume. If the file was renamed and another file
    continues it (`rotated`), a flush may start in one file and end in the other. If the file was truncated or replaced,
    the incomplete flush is returned first, and the first flush of the new content has the event.
    """

    #: number of failed polls; always 0, because an unreadable file raises an error instead
    failed_count = 0

    def __init__(self, path: Path, position: Mapping[str, Any] | None = None) -> None:
        #: name of the trace when it is landed
        self.name = get_input_name(path, source.SOURCE)
        #: whether the last poll found no new data
        self.is_quiet = False
        self._path = path
        restored = _restore(position) if position is not None else None
        self._file = FollowedFile(path, restored and restored[0])
        self._stream = restored[1] if restored else TmioStream()
        self._is_over = restored is not None and restored[2]
        #: position after the last complete line or array
        self._mark: Position | None = restored[0] if restored else None
        #: events since the last flush; events that precede lines of the incomplete flush
        self._events: list[str] = []
        self._passed: list[str] = []
        self._unfit: InputRefused | None = None

    @property
    def is_behind(self) -> bool:
        """Whether more data is already available."""
        return self._file.is_behind

    def poll(self) -> list[Flush]:
        """Return the flushes that new data complete; read at most 4 MiB, and never block.

        Raises InputRefused if the file cannot be followed, at every call until it is replaced.
        """
        piece = self._file.read()
        self.is_quiet = piece is None
        flushes = self._read(piece) if piece is not None else []
        if self._unfit is not None and not flushes:
            raise self._unfit
        return flushes

    def pending(self) -> list[Flush]:
        """Return the incomplete last flush; call this if the file has not grown for a long time.

        Later data of the same flush become a separate flush, also after a restart.
        """
        last = self._stream.pending()
        return [] if last is None else [self._flush(last, self._mark)]

    def finish(self) -> list[Flush]:
        """Return the remaining flushes at the end of the run; the last one has the event `end`, once.

        A last line without a line end counts if it is complete JSON, and is refused if not. Call `poll` first until the
        feed is no longer behind, because this method reads all unread data.
        """
        flushes = self.poll()
        while self.is_behind and self._unfit is None:
            flushes += self.poll()
        if not flushes and self._is_over:
            return []
        flushes += self._finish_stream()
        self._is_over, last = True, flushes[-1]
        flushes[-1] = replace(last, events=(*last.events, "end"), position={**last.position, "is_over": True})
        return flushes

    def _finish_stream(self) -> list[Flush]:
        """Return the remaining flushes, or an empty one."""
        streamed, read_to = self._stream.finish(), self._file.position
        flushes = []
        for flush in streamed or [self._stream.state()]:
            if read_to is not None and flush.end == read_to.offset:
                self._mark = read_to
            flushes.append(self._flush(flush, self._mark))
        return flushes

    def _read(self, piece: Piece) -> list[Flush]:
        flushes = self._end_content(piece) if piece.event else []
        streamed: list[StreamedFlush] = []
        try:
            self._require_plain(piece)
            streamed = self._stream.feed(piece.content) if self._unfit is None else []
        except InputRefused as refusal:
            waiting = self._stream.pending()
            self._unfit, self._stream = refusal, TmioStream()
            streamed = [] if waiting is None else [waiting]
        for flush in streamed:
            flushes.append(self._flush(flush, piece.position(flush.end) if flush.end >= piece.start else self._mark))
        if self._stream.end >= piece.start:
            self._mark = piece.position(self._stream.end)
        return flushes

    def _require_plain(self, piece: Piece) -> None:
        if piece.start == 0 and piece.content[:1] not in _STARTS:
            with suppress(OSError):
                if compression(self._path):
                    raise InputRefused(
                        "A compressed file cannot be followed.",
                        "Follow the plain file, or analyze the whole file with `iosig period`.",
                    )

    def _end_content(self, piece: Piece) -> list[Flush]:
        """Return the flushes that end, because this piece starts new content."""
        if self._stream.end:
            self._passed, self._events = self._passed + self._events, []
        streamed, last = self._stream.end_file()
        if piece.event != "rotated":
            waiting = self._stream.pending()
            last += [] if waiting is None else [waiting]
            self._stream = TmioStream()
        flushes = [self._flush(flush, self._mark) for flush in streamed]
        self._mark = piece.position(0)
        flushes += [self._flush(flush, self._mark, is_before=True) for flush in last]
        self._unfit = None
        self._events.append(str(piece.event))
        return flushes

    def _flush(self, streamed: StreamedFlush, mark: Position | None, *, is_before: bool = False) -> Flush:
        """Build a flush with its position; an event belongs to the first flush that ends after the event.

        is_before: whether the flush ends before the events at its mark.
        """
        events_before, self._passed = self._passed, []
        if mark is None or not mark.event or is_before:
            events_before, self._events = events_before + self._events, []
        events = (*dict.fromkeys(events_before), *(["refused"] if streamed.refused else []))
        self._is_over = False
        position = {
            "file": None if mark is None else mark.to_dict(),
            "line": streamed.line,
            "form": streamed.form,
            "seen": dict(streamed.seen),
            "is_over": False,
        }
        return Flush(streamed.moves, streamed.until_s, position, events=events, refused=streamed.refused)


def _restore(position: Mapping[str, Any]) -> tuple[Position | None, TmioStream, bool]:
    """Restore the file position, the stream from that position on, and whether the run was over."""
    place = None if position["file"] is None else Position.from_dict(position["file"])
    offset = place.offset if place else 0
    stream = TmioStream(offset=offset, line=position["line"], form=position["form"], seen=dict(position["seen"]))
    return place, stream, position["is_over"]
