"""What callers pass, checked before anything is done with it: what is wrong is one sentence."""

from __future__ import annotations

import math
from typing import Any

from workspace_session.model.placing import LATEST, Parent


def text(what: str, value: Any) -> str:
    """A text, an empty one too."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a text, not {type(value).__name__}")
    return value


def text_or_none(what: str, value: Any) -> str | None:
    """A text, or None."""
    return None if value is None else text(what, value)


def parent(value: Any) -> Parent:
    """`LATEST`, None, or the id of a message."""
    return LATEST if value is LATEST else text_or_none("a parent_id", value)


def number(what: str, value: Any) -> float:
    """A number that can be compared with others."""
    if not isinstance(value, int | float):
        raise TypeError(f"{what} is a number, not {type(value).__name__}")
    if math.isnan(value):
        raise ValueError(f"{what} is a number, not NaN")
    return value


def count(what: str, value: Any) -> int:
    """How many of something there are."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} is a whole number, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{what} is zero or more, not {value}")
    return value


def function(what: str, value: Any) -> Any:
    """Something to be called."""
    if not callable(value):
        raise TypeError(f"{what} is a function, not {type(value).__name__}")
    return value
