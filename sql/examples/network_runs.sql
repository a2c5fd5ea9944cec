-- network_runs: traced runs without a network, and why
select
    source_file,
    outcome,
    reason
from network_runs
where outcome <> 'built'
