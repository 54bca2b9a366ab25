"""Search: derived from the logs, deletable at any time, one way in."""

from workspace_session.search.engines import EngineName
from workspace_session.search.query import Query
from workspace_session.search.ranking import Ranked, rank
from workspace_session.search.searcher import Searcher
from workspace_session.search.settings import keep_engine, kept_engine
from workspace_session.search.snippets import snippet

__all__ = [
    "EngineName",
    "Query",
    "Ranked",
    "Searcher",
    "keep_engine",
    "kept_engine",
    "rank",
    "snippet",
]
