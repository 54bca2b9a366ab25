"""Postgres: the schema, and copying sessions between it and a workspace.

The providers and the store are public names of the package itself.
"""

from workspace_session.stores.postgres.schema import apply_schema, schema_sql

__all__ = ["apply_schema", "schema_sql"]
