"""Sessions in PostgreSQL: the same as on files, for when one machine is not enough."""
