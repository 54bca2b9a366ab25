"""What sessions run on: files, memory, Postgres. A store stores; behaviour is in `session`."""
