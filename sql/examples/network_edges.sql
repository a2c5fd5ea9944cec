-- network_edges: pairs of nodes that exchanged most bytes
select
    trace_id,
    source_node,
    target_node,
    sum(read_bytes + written_bytes) as moved_bytes
from network_edges
group by all
order by moved_bytes desc
limit 10
