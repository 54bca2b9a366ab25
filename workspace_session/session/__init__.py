"""The API that agents use: sessions with branches, context blocks, compaction, prompts and tools."""
