"""Search: the tokens of `search`, looked up in a tsvector and confirmed on the text they stand in.

The index tells which texts have all words; whether words of a phrase, or the pairs of an unspaced run,
follow each other is told by the tokens themselves, which are stored in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from workspace_session.model import messages
from workspace_session.model.canonical import parse
from workspace_session.model.clock import normal_time
from workspace_session.model.hits import SearchHit, SearchHits
from workspace_session.search import Query, snippet
from workspace_session.stores.postgres.database import Row, Statements, Values, time_text
from workspace_session.stores.postgres.texts import beginning

_MOST = 1 << 31

# What the server's parser sees no words in at all cannot be looked up, only confirmed.
_MEETS = """
(search_tsv @@ plainto_tsquery('simple', %(words)s)
 OR numnode(plainto_tsquery('simple', %(words)s)) = 0)
AND NOT EXISTS (SELECT 1 FROM unnest(%(runs)s::text[]) AS run
                WHERE strpos(' ' || search_text || ' ', run) = 0)
"""
_RANK = "ts_rank(search_tsv, plainto_tsquery('simple', %(words)s))"

_MESSAGES = f"""
WITH found AS (
  SELECT m.session_id, m.id, m.seq, m.content, m.created_at, {_RANK} AS score,
    count(*) OVER () AS total, s.id AS own_id
  FROM assistant_messages m LEFT JOIN assistant_sessions s ON s.session_id = m.session_id
  WHERE %(where)s AND {_MEETS}
  ORDER BY score DESC, seq DESC LIMIT %(limit)s)
SELECT COALESCE(own_id, session_id), id, content, score, total,
  {time_text("created_at")}
FROM found ORDER BY score DESC, seq DESC
"""
IN_SESSION = _MESSAGES.replace("%(where)s", "m.session_id = %(session)s")
IN_AGENT = _MESSAGES.replace("%(where)s", "s.user_id = %(user)s AND s.agent_id = %(agent)s")

ENTRIES = f"""
SELECT key, content FROM cf_agents_search_entries WHERE label = %(label)s AND {_MEETS}
ORDER BY {_RANK} DESC, updated_at DESC, key LIMIT %(limit)s
"""


class Owner(NamedTuple):
    """Whose messages they are, as far as that is known."""

    agent_id: str | None
    user_id: str | None


NOBODY = Owner(None, None)


def _values(query: Query) -> dict[str, Any]:
    words = dict.fromkeys(token for clause in query.clauses for token in clause)
    runs = [clause for clause in query.clauses if len(clause) > 1 or not clause[0].isascii()]
    return {"words": " ".join(words), "runs": [f" {' '.join(run)} " for run in runs]}


async def search_rows(
    run: Statements, sql: str, query: Query, limit: int, values: Values
) -> list[Row]:
    """The rows that meet a query, the best first."""
    if not query or limit <= 0:
        return []
    return await run.rows(sql, {**values, **_values(query), "limit": int(min(limit, _MOST))})


async def search_messages(
    run: Statements,
    sql: str,
    text: str,
    limit: int,
    values: Values,
    owner: Owner = NOBODY,
) -> SearchHits:
    """The messages that have all words of a text, the best first, of equals the newest."""
    query = Query.of(text)
    rows = await search_rows(run, sql, query, limit, values)
    hits = [_hit(row, query, owner) for row in rows]
    return SearchHits(hits, rows[0][4] if rows else 0)


def _hit(row: Row, query: Query, owner: Owner) -> SearchHit:
    session_id, message_id, content, score, _total, created_at = row
    message = parse(content.encode())
    text = messages.text(message)
    return SearchHit(
        session_id=session_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        message_id=message_id,
        role=messages.role(message),
        content=text,
        snippet=snippet(beginning(text), query),
        score=score,
        created_at=normal_time(message.get("createdAt")) or created_at,
    )
