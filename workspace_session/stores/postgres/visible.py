"""What overlays leave of a path, without reading what they hide.

The ids of a path and the ends of the overlays tell which messages are shown; only those are read. What
is shown is decided by the same rules as ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from workspace_session.model.overlays import cover
from workspace_session.session.shapes import Shown
from workspace_session.session.values import Compaction
from workspace_session.stores.postgres.database import Statements
from workspace_session.stores.postgres.paths import Paths
from workspace_session.stores.postgres.stored import SOME, as_message

_WORTH = 0.5  # of a path: if more is shown than this, reading all of it at once is quicker


async def visible(
    run: Statements, paths: Paths, leaf: str | None, overlays: Sequence[Compaction]
) -> list[Shown] | None:
    """What a model is shown of a path; None if overlays hide little of it."""
    ids = [step.id for step in await paths.all_steps(run, leaf)]
    here = set(ids)
    active = [one for one in overlays if not one.retired]
    ends = {end for one in active for end in (one.from_id, one.to_id)} & here
    values = {"session": paths.session, "ids": list(ends)}
    sound = {row[0] for row in await run.rows(SOME, values) if as_message(row) is not None}
    apply = [one for one in active if one.from_id in sound and one.to_id in sound]
    items = cover(ids, ids, apply)
    left = [ids[item] for item in items if isinstance(item, int)]
    if len(left) > _WORTH * len(ids):
        return None
    rows = await run.rows(SOME, {"session": paths.session, "ids": left})
    messages = {row[0]: as_message(row) for row in rows}
    found = (item if isinstance(item, Compaction) else messages[ids[item]] for item in items)
    return [item for item in found if item is not None]
