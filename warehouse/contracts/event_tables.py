"""The table of request events: a trace of all layers through which requests go."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Table

REQUEST_EVENTS = Table(
    name="request_events",
    layer="landed",
    grain="one row per event of a traced run's request in a layer of the I/O system",
    key=("trace_id", "event"),
    columns=(
        c.TRACE_ID,
        c.EVENT,
        c.LAYER_NUMBER,
        c.LAYER,
        c.NODE,
        c.RANK,
        c.REQUEST_ID.optional(),
        c.EVENT_KIND,
        c.PEER.optional(),
        c.BEGAN_S,
        c.CEASED_S,
        c.EVENT_BYTES.optional(),
        c.DIRECTION.optional(),
        c.FILE_NUMBER.optional(),
        c.IS_COLLECTIVE,
    ),
    is_published=False,
)
