"""Build and parse application ids.

An id is user/application/node_count, with %2F for a slash in the user, and `*` for all node counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

#: SQL for the id of a row with `user`, `application` and `node_count`; NULL if a part is NULL
APPLICATION_ID_SQL = """replace("user", '/', '%2F') || '/' || application || '/' || node_count"""


def make_application_id(user: str | None, application: str | None, node_count: int | None) -> str | None:
    """Return the id of an application; None if a part is unknown."""
    if user is None or application is None or node_count is None:
        return None
    return f"{user_prefix(user)}{application}/{node_count}"


def application_ids() -> pl.Expr:
    """Return the ids of rows with `user`, `application` and `node_count`; NULL if a part is NULL."""
    import polars as pl

    user = pl.col("user").str.replace_all("/", "%2F", literal=True)
    return pl.concat_str(user, "application", pl.col("node_count").cast(pl.String), separator="/")


def user_prefix(user: str) -> str:
    """Return the common prefix of the ids of a user's applications."""
    return f"{user.replace('/', '%2F')}/"


def without_node_count(application_id: str) -> str:
    """Return an id up to the node count; this part is the same for all sizes of an application."""
    return application_id.rpartition("/")[0]


def all_node_counts(application_id: str) -> str:
    """Return the id of an application over all its node counts."""
    return f"{without_node_count(application_id)}/*"
