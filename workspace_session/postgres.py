"""Postgres: the schema, and copying sessions between it and a workspace.

The providers and the store are public names of the package itself.
"""

from workspace_session.errors import PostgresFailed
from workspace_session.stores.postgres.connecting import connected, owners
from workspace_session.stores.postgres.schema import apply_schema, schema_sql
from workspace_session.stores.postgres.transfer import Copied, Progress, pull, push

__all__ = [
    "Copied",
    "PostgresFailed",
    "Progress",
    "apply_schema",
    "connected",
    "owners",
    "pull",
    "push",
    "schema_sql",
]
