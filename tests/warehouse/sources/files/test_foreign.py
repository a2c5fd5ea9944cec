from __future__ import annotations

import io
import re
import tarfile
import zipfile

import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.foreign import refuse_foreign


def archive_by_tar() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("sacct.txt"))
    return content.getvalue()


def archive_by_zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("sacct.txt", "JobID|State\n")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (archive_by_tar(), "The content is a tar archive."),
        (archive_by_zip(), "The content is a zip archive."),
        (b"<html><body>x</body></html>", "The content is a web page."),
        (b"\n<!DOCTYPE html>\n<head><title>\n502 Bad\n Gateway</title>", "web page, titled `502 Bad Gateway`."),
        (b"warning: x\nLast login\n{}\n", "The line `warning: x` precedes the JSON document."),
    ],
)
def test_cause_is_named(content: bytes, reason: str) -> None:
    with pytest.raises(InputRefused, match=re.escape(reason)) as refusal:
        refuse_foreign(content, lambda document: document == b"{}\n")
    assert refusal.value.remedy


@pytest.mark.parametrize("content", [b"", b"hello\n", b"{}\n", b"<htmlx>", b"x\n[]\n", b"x\n" * 30 + b"{}\n"])
def test_other_content_is_not_refused(content: bytes) -> None:
    refuse_foreign(content, lambda document: document == b"{}\n")
