"""Simulate the demo's site: logs, the ground truth, and planted events.

- `simulated` (`TrueSignature`, `classes_truth`, `find_shipped_logs`): Logs of a simulated machine, and the truth.
- `planted` (`demo_site`, `Collision`, `collision`, `find_traced_job_id`): The events that are planted in the site.
- `trace` (`write_trace`): A Darshan log of a simulated run.
"""
