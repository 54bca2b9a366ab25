"""What failed in saving a turn: told with the reply, or with the error that the turn ended in."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from workspace_session.errors import StateConflict, TurnConflict, TurnNotSaved
from workspace_session.harness.context import BoundContext

logger = logging.getLogger("workspace_session")


def not_saved(reply: object, errors: Sequence[BaseException]) -> TurnNotSaved:
    """The error that holds a reply whose turn could not be saved."""
    is_conflict = any(isinstance(error, StateConflict) for error in errors)
    return (TurnConflict if is_conflict else TurnNotSaved)(reply, errors)


def tell(ctx: BoundContext, error: BaseException, failures: Sequence[BaseException]) -> None:
    """Say with an error that goes on what has failed besides."""
    for failure in failures:
        logger.error("a turn of session %r is not saved", ctx.session_id, exc_info=failure)
        error.add_note(f"the turn is not saved: {type(failure).__name__}: {failure}")
