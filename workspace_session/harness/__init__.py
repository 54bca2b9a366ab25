"""The harness: an agent's turn, saved whole. `docs/harness.md` shows how it is used."""
