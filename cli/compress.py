"""`iosig compress`: compress a traced run."""

from __future__ import annotations

from pathlib import Path

import click

from iosig.cli.options import GlobalOptions, compressed_option, json_option


@click.command("compress")
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path, exists=True))
@compressed_option
@json_option
@click.pass_obj
def compress_command(warehouse: GlobalOptions, trace: Path, output: Path, as_json: bool) -> int:
    """Compress a traced run into one small file: loops of calls, values by rank, times as histograms.

    TRACE is a Recorder trace: its folder, or a tar archive of it. `iosig expand` restores every call of every rank, in
    order and with its arguments; times are restored as the means of the histograms.
    """
    from iosig.cli.printing import bytes_text, progress_bar, show, show_json
    from iosig.traces.extrapolation.compression import call_total, compress_trace, keep_apart
    from iosig.transforms.traces.frames import to_frame
    from iosig.warehouse.sources.extrapolations import compressed_traces
    from iosig.warehouse.sources.recorder import files as recorder_files

    keep_apart(output, [trace])
    compressed = compress_trace(trace, progress_bar)
    compressed_traces.write(output, to_frame(compressed), {"process_count": str(compressed.process_count)})
    with recorder_files.open_trace(trace) as (_, files):
        traced_bytes = sum(files.names.values())
    row = {
        "ranks": compressed.process_count,
        "calls": call_total(compressed),
        "classes": len(compressed.classes),
        "traced_bytes": traced_bytes,
        "compressed_bytes": output.stat().st_size,
    }
    if as_json:
        from iosig.cli.documents import CompressionDocument

        show_json(CompressionDocument(**row))
        return 0
    sizes = bytes_text(row["traced_bytes"]), bytes_text(row["compressed_bytes"])
    show(
        f"{trace.name}, compressed into {output}",
        ("ranks", "calls", "rank classes", "as traced", "compressed"),
        [(row["ranks"], row["calls"], row["classes"], *sizes)],
    )
    return 0
