"""Request events: what each layer of the I/O system did for each request."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

REQUEST_EVENTS = Table(
    name="request_events",
    layer="landed",
    grain="one row per event of a traced run's request in a layer of the I/O system",
    key=("trace_id", "event"),
    columns=(
        c.TRACE_ID,
        Column("event", "int", "The event's place in the trace, by the time of its beginning, from 0.", low=0),
        Column(
            "layer_number",
            "int",
            "The layer's place: it rises from the outermost layer, the program itself, inward.",
            low=0,
        ),
        Column("layer", "text", "The layer in which the event was seen, as the trace calls it: application and so on."),
        Column(
            "node",
            "text",
            "The node of that layer, as the trace calls it; in the outermost layer the rank.",
            hides="node",
        ),
        c.RANK,
        Column(
            "request_id",
            "text",
            "The id of the rank's request for which the event was: with the rank it is the request's own.",
            nullable=True,
            hides="id",
        ),
        Column(
            "event_kind",
            "text",
            "What happened: a request, a send or receive on its way inward, a write, an open, or another word of the "
            "trace's.",
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
        Column("event_bytes", "real", "Bytes that the event moved or asked for.", nullable=True),
        c.DIRECTION.optional(),
        c.FILE_NUMBER.optional(),
        Column("is_collective", "bool", "Whether the call waits for all ranks: it ends for all of them at once."),
    ),
    is_published=False,
)
