"""Build and parse application ids.

An id is user@machine/application/node_count. User and machine are percent-encoded, `@machine` is absent if the cluster
is unknown, and `*` stands for all node counts. The models `jobs` and `queued_jobs` compute the ids of runs with the
macro of `MACRO_SQL`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

#: the cluster of jobs whose log does not name one
UNKNOWN_CLUSTER = "default"
#: creates the SQL form of `make_application_id`, which every engine for models has
MACRO_SQL = f"""
    create macro make_application_id(machine, "user", application, node_count) as
    url_encode("user") || coalesce('@' || url_encode(nullif(machine, '{UNKNOWN_CLUSTER}')), '')
    || '/' || application || '/' || node_count
"""
#: SQL for the user, machine, application and node count (NULL: all) of a row with `application_id`
ID_PARTS_SQL = f"""
    url_decode(split_part(split_part(application_id, '/', 1), '@', 1)) as user,
    coalesce(nullif(url_decode(split_part(split_part(application_id, '/', 1), '@', 2)), ''), '{UNKNOWN_CLUSTER}')
        as machine,
    regexp_extract(application_id, '^[^/]*/(.*)/[^/]*$', 1, 's') as application,
    try_cast(split_part(application_id, '/', -1) as bigint) as node_count
"""


def make_application_id(
    machine: str | None, user: str | None, application: str | None, node_count: int | None
) -> str | None:
    """Return the id of an application; None if a part is unknown."""
    if machine is None or user is None or application is None or node_count is None:
        return None
    at_machine = "" if machine == UNKNOWN_CLUSTER else f"@{quote(machine, safe='')}"
    return f"{quote(user, safe='')}{at_machine}/{application}/{node_count}"


def get_user(application_id: str) -> str:
    """Extract the user from an application id, and decode it."""
    return unquote(application_id.partition("/")[0].partition("@")[0])


def get_machine(application_id: str) -> str:
    """Return the machine of an application; `default` if its cluster is unknown."""
    return unquote(application_id.partition("/")[0].partition("@")[2]) or UNKNOWN_CLUSTER


def replace_user(application_id: str, user: str) -> str:
    """Return an id with another user."""
    owner, slash, rest = application_id.partition("/")
    return f"{quote(user, safe='')}{''.join(owner.partition('@')[1:])}{slash}{rest}"


def without_machine(application_id: str) -> str:
    """Return user/application/node_count, which is the same for an application on all machines."""
    owner, slash, rest = application_id.partition("/")
    return f"{owner.partition('@')[0]}{slash}{rest}"


def without_node_count(application_id: str) -> str:
    """Return an id up to the node count; this part is the same for all sizes of an application."""
    return application_id.rpartition("/")[0]


def all_node_counts(application_id: str) -> str:
    """Return the id of an application over all its node counts."""
    return f"{without_node_count(application_id)}/*"
