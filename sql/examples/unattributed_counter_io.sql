-- unattributed_counter_io: bytes counted for names without a job
select
    filesystem,
    key_kind,
    sum(read_bytes + written_bytes) as moved_bytes
from unattributed_counter_io
group by all
order by moved_bytes desc nulls last
