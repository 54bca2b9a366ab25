"""Two states that grew from one: what both say, with nothing of either lost in silence.

Objects are merged key by key, lists as what was added at their ends. Where both sides changed the
same value to different ones, ours stands and its path is named in `overridden`. Only two rewritten
lists have no answer: `StateUnmergeable`. Values are the same when their bytes are, so `1`, `1.0` and
`true` are three.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from workspace_session.errors import StateUnmergeable
from workspace_session.model.canonical import compact, compact_sorted, parse
from workspace_session.model.rendering import path_step

_log = logging.getLogger(__name__)


class _Missing:
    """No value at all, which is not the same as null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Merged(NamedTuple):
    """The merged value, and the paths at which theirs had to give way to ours."""

    value: Any
    overridden: tuple[str, ...]


class _Case(NamedTuple):
    """One value in its three versions, and where the answer goes."""

    into: dict[str, Any]
    key: str
    base: Any
    ours: Any
    theirs: Any
    path: str


def merge_states(
    base: Any, ours: Any, theirs: Any, *, session_key: str = "", key: str = ""
) -> Merged:
    """Merge two states; `base` is what both grew from, or `MISSING` when there was nothing.

    `session_key` and `key` are for the text of an error.
    """
    root: dict[str, Any] = {}
    overridden: list[str] = []
    was, our, their = map(_as_stored, (base, ours, theirs))
    pending = [_Case(root, "value", was, our, their, "$")]
    while pending:  # and no recursion: a state may be 500 levels deep
        case = pending.pop()
        if _is_settled(case):
            continue
        if isinstance(case.ours, dict) and isinstance(case.theirs, dict):
            pending.extend(_members(case))
        elif not _merge_lists(case, session_key, key):
            case.into[case.key] = case.ours
            overridden.append(case.path)
            _log.warning("both sides changed %s of state %r; ours stands", case.path, key)
    return Merged(root["value"], tuple(sorted(overridden)))


def _as_stored(value: Any) -> Any:
    """As it comes back from a file: no tuples, no surrogates, nothing shared with the caller."""
    return MISSING if value is MISSING else parse(compact(value))


def _is_settled(case: _Case) -> bool:
    """Equal sides, or only one of them changed."""
    base, ours, theirs = (_bytes_of(version) for version in (case.base, case.ours, case.theirs))
    if ours not in (base, theirs) and theirs != base:
        return False
    case.into[case.key] = case.theirs if ours == base else case.ours
    return True


def _bytes_of(value: Any) -> bytes | None:
    return None if value is MISSING else compact_sorted(value)


# -- objects ---------------------------------------------------------------------------------------


def _members(case: _Case) -> Iterator[_Case]:
    merged = case.into[case.key] = {}
    base = case.base if isinstance(case.base, dict) else {}
    for key in {**case.theirs, **case.ours}:
        was = base.get(key, MISSING)
        our, their = case.ours.get(key, MISSING), case.theirs.get(key, MISSING)
        if our is not MISSING and their is not MISSING:
            merged[key] = None  # holds the place: the answer comes later
            yield _Case(merged, key, was, our, their, case.path + path_step(key))
            continue
        there = their if our is MISSING else our
        # Added by the one, or changed by the one while the other removed it.
        if _bytes_of(there) != _bytes_of(was):
            merged[key] = there


# -- lists -----------------------------------------------------------------------------------------


def _merge_lists(case: _Case, session_key: str, key: str) -> bool:
    base = [] if case.base is MISSING else case.base
    if not all(isinstance(side, list) for side in (base, case.ours, case.theirs)):
        return False
    ours_grew, theirs_grew = _starts_with(case.ours, base), _starts_with(case.theirs, base)
    our_tail, their_tail = case.ours[len(base) :], case.theirs[len(base) :]
    if theirs_grew and ours_grew:
        merged = [*base, *_united(their_tail, our_tail, later_wins=True)]
    elif ours_grew:
        merged = _united(case.theirs, our_tail, later_wins=True)
    elif theirs_grew:
        merged = _united(case.ours, their_tail, later_wins=False)
    else:
        raise StateUnmergeable(session_key, key, case.path)
    case.into[case.key] = merged
    return True


def _starts_with(items: list[Any], base: list[Any]) -> bool:
    return len(items) >= len(base) and _bytes_of(items[: len(base)]) == _bytes_of(base)


def _united(first: list[Any], then: list[Any], *, later_wins: bool) -> list[Any]:
    """Both lists after each other, an object that both have (by its `id`) in its first place only."""
    places: dict[bytes, int] = {}
    for place, item in enumerate(first):
        if (name := _id_of(item)) is not None:
            places.setdefault(name, place)
    united = list(first)
    for item in then:
        name = _id_of(item)
        if name is None or name not in places:
            united.append(item)
        elif later_wins:
            united[places[name]] = item
    return united


def _id_of(item: Any) -> bytes | None:
    has_id = isinstance(item, dict) and item.get("id") is not None
    return compact_sorted(item["id"]) if has_id else None
