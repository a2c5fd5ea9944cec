"""Tables of request events: the work of each layer of the I/O system for each request."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

REQUEST_EVENTS = Table(
    name="request_events",
    layer="landed",
    grain="one row per event of a traced run's request in a layer of the I/O system",
    key=("trace_id", "event"),
    columns=(
        c.TRACE_ID,
        Column("event", "int", "Number of the event in the trace, by start time, from 0.", low=0),
        Column(
            "layer_number",
            "int",
            "Number of the layer, rising inward from the outermost layer, the program.",
            low=0,
        ),
        Column("layer", "text", "The layer of the event, as named in the trace, such as application."),
        Column(
            "node",
            "text",
            "The node of that layer, as named in the trace; in the outermost layer, the rank.",
            hides="node",
        ),
        c.RANK,
        Column(
            "request_id",
            "text",
            "Id of the request that the event belongs to, unique per rank.",
            nullable=True,
            hides="id",
        ),
        Column(
            "event_kind",
            "text",
            (
                "Kind of the event: a request, a send or receive on its way inward, a write, an open, or another word "
                "of the trace."
            ),
        ),
        Column(
            "peer",
            "text",
            "The node at the other end of a send or receive, or the device that was written to.",
            nullable=True,
            hides="node",
        ),
        c.START_S,
        c.END_S,
        Column("event_bytes", "real", "Bytes that the event moved or requested.", nullable=True),
        c.DIRECTION.optional(),
        c.FILE_NUMBER.optional(),
        Column("is_collective", "bool", "Whether the call is collective: it ends for all ranks at the same time."),
    ),
    is_published=False,
)
