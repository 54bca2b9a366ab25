"""Where sessions live: plain files, appended under locks, replaced atomically."""
