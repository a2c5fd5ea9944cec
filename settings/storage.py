"""Define the settings for retention of releases and raw polls, pseudonyms, and the catalogue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from iosig.settings.values import Section, without_password
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.servers import EMBEDDED, NAME, Server


class StorageSettings(Section):
    """Retention of releases and raw polls."""

    keep_releases: int | None = Field(
        None,
        ge=1,
        description="number of newest releases to keep (up to a tenth more) besides pinned ones; all if not given",
    )
    keep_landed_days: int | None = Field(
        None,
        ge=1,
        description=(
            "age at which raw polls are deleted, if all kept releases contain them; their days can then no longer "
            "be recomputed; never if not given [days]"
        ),
    )


class PrivacySettings(Section):
    """Pseudonymization of users, accounts, jobs and files, and its key."""

    is_pseudonymized: bool = Field(
        False, description="store names as keyed hashes; cannot be changed after the first landing"
    )
    key_file: Path | None = Field(
        None, description="file with the key, at least 32 bytes, readable only by its owner; default: key_variable"
    )
    key_variable: str = Field(
        "IOSIG_PRIVACY_KEY", description="environment variable with the key; never printed or stored"
    )

    def key(self) -> bytes | None:
        """Return the pseudonymization key, or None without pseudonyms; raise UsageError if the key is missing."""
        if not self.is_pseudonymized:
            return None
        if self.key_file is None:
            secret = os.environb.get(os.fsencode(self.key_variable), b"")
            if not secret:
                raise UsageError(f"Set privacy.key_file, or {self.key_variable}, to the key of pseudonyms.")
            return secret
        try:
            if self.key_file.stat().st_mode & 0o077:
                raise UsageError(
                    f"{self.key_file} contains the key of pseudonyms and must be readable only by its owner: run "
                    "`chmod 600` on it."
                )
            return self.key_file.read_bytes().strip()
        except OSError as error:
            raise UsageError(f"The key of pseudonyms, {self.key_file}, cannot be read: {error.strerror}.") from error


class CatalogueSettings(Section):
    """The Iceberg catalogue; unset values keep the warehouse's current catalogue, initially an SQLite file."""

    kind: Literal["sqlite", "postgresql", "rest"] | None = Field(
        None, description="an SQLite file in the warehouse, a PostgreSQL server, or an Iceberg REST server"
    )
    uri: Annotated[str, AfterValidator(without_password)] | None = Field(
        None,
        description=(
            "address of the server, without a password. libpq reads passwords from PGPASSWORD or ~/.pgpass; "
            "pyiceberg reads credentials of a REST server from PYICEBERG_CATALOG__IOSIG__CREDENTIAL (or __TOKEN) "
            "or ~/.pyiceberg.yaml"
        ),
    )
    name: str = Field(
        NAME,
        min_length=1,
        max_length=255,
        description=(
            "name of the catalogue, different for each warehouse; for a REST server, its name in pyiceberg's "
            "variables and file"
        ),
    )
    warehouse: str = Field("", description="name of the warehouse at a REST server, different for each warehouse")
    location: str = Field(
        "",
        pattern=r"^(|[a-z0-9]+://[^\s?]+[^\s?/])$",
        description=(
            "parent of the folder `tables/`, if a REST server accepts only its own location, such as "
            "`s3://BUCKET`; default: the warehouse"
        ),
    )

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if (self.kind in ("postgresql", "rest")) != (self.uri is not None):
            raise ValueError("uri needs kind = 'postgresql' or 'rest'")
        begins = {"postgresql": ("postgresql://", "postgres://"), "rest": ("http://", "https://")}.get(self.kind or "")
        if begins and self.uri and not self.uri.startswith(begins):
            raise ValueError(f"uri must begin with {begins[0]} where kind = {self.kind!r}")
        if self.kind != "rest" and (self.warehouse or self.location):
            raise ValueError("warehouse and location need kind = 'rest'")
        return self

    def server(self) -> Server | None:
        """Return the configured catalogue server; None keeps the current catalogue."""
        if self.kind is None:
            return None
        return Server(self.kind, self.uri, self.name, self.warehouse, self.location) if self.uri else EMBEDDED
