"""The demo's site: simulated logs, the truth behind them, and the planted events.

- `simulated` (`TrueSignature`, `classes_truth`, `find_shipped_logs`): The logs of a simulated machine, and its truth.
- `planted` (`demo_site`, `Collision`, `collision`, `find_traced_job_id`): The facts that are planted in the site.
- `trace` (`write_trace`): A Darshan log of a simulated run.
"""
