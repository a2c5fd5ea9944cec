"""Provide an engine for all models; each test replaces the tables that its model reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts import Table
from iosig.warehouse.store import models
from tests.sql import given


@pytest.fixture(scope="session")
def select(tmp_path_factory: pytest.TempPathFactory) -> Iterator[given.Select]:
    """Run a model on tables given by `layer.name`; see `tests.sql.given`."""
    with models.engine(tmp_path_factory.mktemp("spill"), "1GB") as connection:

        def run(model: Table, given_tables: Mapping[str, str | pl.DataFrame], /, **parameters: Any) -> pl.DataFrame:
            return given.select(connection, model, given_tables, parameters)

        yield run
