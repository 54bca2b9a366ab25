"""Who is compacting a session: a note in the database, believed for a while.

A summariser may take minutes, and no connection is held as long as it runs. On a pool the note is
renewed meanwhile; whoever dies leaves one that nobody believes a minute later. On a single connection,
where nothing may go on behind its owner's back, it is believed for ten. Should the function take
longer still, two compactions may run, and the second finds its range changed and stores nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex

from workspace_session.stores.postgres.database import Database

logger = logging.getLogger("workspace_session")

RENEWED, UNATTENDED = 60.0, 600.0  # seconds that a note is believed

# Whoever is just taking off, or has in a transaction that is still open, holds this.
_TRY = (
    "SELECT pg_try_advisory_xact_lock(hashtextextended("
    "'workspace_session:flight:' || %(session)s, 0))"
)
_TAKE_OFF = """
INSERT INTO assistant_flights (session_id, holder, until)
VALUES (%(session)s, %(holder)s, clock_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (session_id) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until
WHERE assistant_flights.until < clock_timestamp() OR assistant_flights.holder = EXCLUDED.holder
"""
_LAND = "DELETE FROM assistant_flights WHERE session_id = %(session)s AND holder = %(holder)s"


@asynccontextmanager
async def flying(database: Database, session: str) -> AsyncIterator[bool]:
    """Whether this is the only compaction of a session, as long as it lasts."""
    holder = token_hex(8)
    if not await _take_off(database, session, holder):
        yield False
        return
    renewing = asyncio.create_task(_renew(database, session, holder)) if database.is_pool else None
    try:
        yield True
    finally:
        if renewing is not None:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
        async with database.operation() as run:
            await run.run(_LAND, {"session": session, "holder": holder})


async def _take_off(database: Database, session: str, holder: str) -> bool:
    seconds = RENEWED if database.is_pool else UNATTENDED
    values = {"session": session, "holder": holder, "seconds": seconds}
    async with database.operation() as run:
        free = await run.row(_TRY, values)
        return bool(free and free[0]) and await run.run(_TAKE_OFF, values) > 0


async def _renew(database: Database, session: str, holder: str) -> None:
    while True:
        await asyncio.sleep(RENEWED / 3)
        try:
            await _take_off(database, session, holder)
        except Exception as error:  # noqa: BLE001 - the next attempt may succeed
            logger.warning("the compaction of a session could not be noted again: %s", error)
