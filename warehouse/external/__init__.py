"""Call external programs and servers; each call has a time limit, and no request leaves the configured server.

- `deadlines` (`Deadline`, `Timeouts`): Time limits of requests, and a timer that shuts a socket down.
- `http` (`fetch`, `get_origin`): HTTP requests with a time limit, without redirects to other servers.
- `processes` (`run`, `end_group`): Child processes that end together with all processes that they started.
"""
