"""Searching a workspace: from what a user typed to the messages that say it.

An index knows where the line of a message is; what it says is read from the log itself. A line that is
no longer where the index knows it was moved after the search began, and the search is made again.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Unpack

from workspace_session.files.forks import keep_over_forks
from workspace_session.files.layout import AgentPlace, Layout
from workspace_session.model.clock import format_time, normal_time
from workspace_session.model.entries import Entry
from workspace_session.model.hits import Filters, Moment, SearchHit, SearchHits
from workspace_session.model.lines import NotAnEntry, decode
from workspace_session.search.catch_up import Report
from workspace_session.search.documents import document_id, words_of
from workspace_session.search.engine import Request, Row
from workspace_session.search.engines import EngineName, kind_of
from workspace_session.search.index import Index
from workspace_session.search.place import IndexPlace
from workspace_session.search.query import Query
from workspace_session.search.snippets import snippet

Namespace = tuple[str, ...]
_TRIES = 3
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Searcher:
    """Searches the logs of a workspace, one namespace at a time."""

    def __init__(self, layout: Layout, engine: EngineName) -> None:
        self._layout = layout
        self._engine = engine
        self._indexes: dict[Namespace, Index] = {}
        self._mutex = threading.Lock()
        self._closing = weakref.finalize(self, _close_all, self._indexes)
        keep_over_forks(self)

    def renew_in_child(self) -> None:
        """Whoever held the lock does not exist here."""
        self._mutex = threading.Lock()

    def search(
        self,
        query: str,
        limit: int | None = 20,
        *,
        namespace: Namespace = (),
        agent: str | None = None,
        session: str | None = None,
        report: Report | None = None,
        **filters: Unpack[Filters],
    ) -> SearchHits:
        """The messages of a namespace that meet a query, the best first; without a limit, all."""
        if unknown := filters.keys() - Filters.__annotations__:
            raise TypeError(f"search() has no filter {min(unknown)!r}")
        request = Request(
            query=Query.of(query),
            limit=sys.maxsize if limit is None else limit,
            agent=agent,
            session=session,
            role=filters.get("role"),
            since=_fixed(filters.get("since")),
            until=_fixed(filters.get("until")),
            everything=filters.get("everything", False),
            newest_first=filters.get("newest_first", False),
        )
        if not request.query or request.limit <= 0:
            return SearchHits()
        hits = SearchHits()
        for _ in range(_TRIES):
            found = self._index(namespace).find(request, report)
            hits = SearchHits(self._hits(found.rows, namespace, request), found.total)
            if len(hits) == len(found.rows):
                break
        return hits

    def reindex(self, namespace: Namespace = (), report: Report | None = None) -> None:
        """Make the index of a namespace anew."""
        self._index(namespace).rebuild(report)

    def throw_away(self, namespace: Namespace = ()) -> None:
        """Remove the index of a namespace; the next search makes it anew."""
        self._index(namespace).throw_away()

    def close(self) -> None:
        """Let go of the files; a search opens them again."""
        _close_all(self._indexes)

    def _index(self, namespace: Namespace) -> Index:
        with self._mutex:
            index = self._indexes.get(namespace)
            if index is None:
                index = Index(IndexPlace(self._layout, namespace), kind_of(self._engine))
                self._indexes[namespace] = index
            return index

    # -- hits --------------------------------------------------------------------------------------

    def _hits(self, rows: list[Row], namespace: Namespace, request: Request) -> Iterator[SearchHit]:
        for row in rows:
            entry = _entry(self._layout.agent(row.log.agent_id, namespace), row)
            if entry is None:
                continue
            words = words_of(entry)
            content = "\n".join(filter(None, words)) if request.everything else words.text
            yield SearchHit(
                session_id=row.log.session_id,
                agent_id=row.log.agent_id,
                user_id="/".join(namespace) or None,
                message_id=row.id,
                role=row.role,
                content=content,
                snippet=snippet(content, request.query),
                score=row.score,
                created_at=row.created_at,
            )


def _entry(place: AgentPlace, row: Row) -> Entry | None:
    """The entry that was indexed, from the session's log; None when it is not there any more."""
    for path in (place.log(row.log.session_id), place.tree(row.log.session_id)):
        try:
            descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
        except OSError:
            continue
        try:
            entry = decode(os.pread(descriptor, row.length, row.start))
        except NotAnEntry:
            return None
        finally:
            os.close(descriptor)
        return entry if document_id(entry) == row.id else None
    return None


def _fixed(moment: Moment | None) -> str | None:
    """A moment in the form that times are stored in; without a zone it is in UTC."""
    if isinstance(moment, datetime):
        return format_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    fixed = normal_time(moment)
    if moment is not None and fixed is None:
        raise ValueError(f"{moment!r} is not a time")
    return fixed


def _close_all(indexes: dict[Namespace, Index]) -> None:
    for index in indexes.values():
        index.close()
