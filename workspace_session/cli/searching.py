"""Commands that find what was said: search, reindex."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from workspace_session import AgentWorkspace, Message, SearchHit, SearchHits, SessionTree
from workspace_session.cli.options import example, in_workspace, json_option
from workspace_session.cli.render import (
    as_json_object,
    echo_json,
    echo_lines,
    fit,
    gist,
    inert,
    moment,
    plural,
    speaker,
    talk,
)
from workspace_session.cli.scope import Scope
from workspace_session.cli.screen import Screen
from workspace_session.model.clock import normal_time

_MARK = "**"  # around matches in a snippet
_INDENT = 2
_COUNT, _POSITIVE = click.IntRange(min=0), click.IntRange(min=1)
_SLOW_SECONDS = 1.0  # before that, no search talks of the index it is making


def _time(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    if given is not None and normal_time(given) is None:
        raise click.BadParameter(f"{given!r} is not a time")
    return given


@click.command(epilog=example("workspace-session search deploy friday --context 1"))
@click.argument("words", metavar="QUERY...", nargs=-1, required=True)
@click.option("--session", metavar="SESSION", help="Only this session.")
@click.option("--role", metavar="ROLE", help="Only what this role said: user, assistant, …")
@click.option("--since", callback=_time, metavar="TIME", help="Only from this time or day on.")
@click.option("--until", callback=_time, metavar="TIME", help="Only before this time or day.")
@click.option("--limit", type=_POSITIVE, metavar="N", default=10, help="So many. Default: 10.")
@click.option("--context", "around", type=_COUNT, metavar="N", default=0, help="N messages around.")
@json_option("a list of objects, the whole text of each message among it")
@in_workspace
def search(
    scope: Scope, words: tuple[str, ...], limit: int, around: int, as_json: bool, **filters: Any
) -> None:
    """Find messages, in any branch, that have all words of QUERY; the best come first.

    A part in quotation marks must occur as it stands: search '"by the river"'.
    """
    found = _found(scope, " ".join(words), limit, **filters)
    results = [_Result.of(scope, hit, around) for hit in found]
    if as_json:
        echo_json([_document(result) for result in results])
        return
    screen = Screen()
    for result in results:
        echo_lines(_shown(result, screen))
    if found.total > len(found):
        talk(f"showing the best {len(found)} of {found.total:,} matches")
    elif not found:
        talk("nothing found")


def _found(
    scope: Scope, query: str, limit: int, *, session: str | None, **filters: Any
) -> SearchHits:
    """The best hits of all users that the command line leaves."""
    agents = scope.agents()
    if session is not None:
        one = scope.find(session)
        agents, session = [one.agent], one.session_id
    ids = {agent.id for agent in agents}
    filters |= {"session": session, "agent": min(ids) if len(ids) == 1 else None}
    hits: list[SearchHit] = []
    total = 0
    for namespace in _namespaces(agents):
        with _progress(patient=True) as report:
            found = scope.workspace.searcher.search(
                query, limit, namespace=namespace, report=report, **filters
            )
        hits += found
        total += found.total
    hits.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
    return SearchHits(hits[:limit], total)


def _namespaces(agents: Iterable[AgentWorkspace]) -> Iterable[tuple[str, ...]]:
    return dict.fromkeys(agent.place.namespace for agent in agents)


# -- results ---------------------------------------------------------------------------------------


class _Result(NamedTuple):
    """A hit, and the messages around it."""

    hit: SearchHit
    before: list[Message]
    after: list[Message]

    @classmethod
    def of(cls, scope: Scope, hit: SearchHit, count: int) -> _Result:
        """With so many messages before it and after it."""
        if not count:
            return cls(hit, [], [])
        agents = {(agent.id, agent.user): agent for agent in scope.agents()}
        tree = agents[str(hit.agent_id), hit.user_id].tree(hit.session_id)
        before = tree.path(hit.message_id)[-count - 1 : -1]
        return cls(hit, before, _following(tree, hit.message_id, count))


def _following(tree: SessionTree, message_id: str, count: int) -> list[Message]:
    """What follows a message on the active branch, or else on the newest that it leads to."""
    active = tree.path()
    ids = [entry.id for entry in active]
    if message_id in ids:
        at = ids.index(message_id) + 1
        return active[at : at + count]
    after: list[Message] = []
    children = tree.children(message_id)
    while children and len(after) < count:
        after.append(children[-1])
        children = tree.children(children[-1].id)
    return after


def _document(result: _Result) -> dict[str, Any]:
    found = as_json_object(result.hit)
    if result.before or result.after:
        found["before"] = [entry.message for entry in result.before]
        found["after"] = [entry.message for entry in result.after]
    return found


def _shown(result: _Result, screen: Screen) -> Iterator[str]:
    hit = result.hit
    owner = hit.agent_id if hit.user_id is None else f"{hit.agent_id} of {hit.user_id}"
    place = f"{hit.session_id}  {owner}  {moment(hit.created_at)}  {hit.message_id}"
    yield screen.paint(inert(place), "cyan")
    yield from (_beside(entry, screen) for entry in result.before)
    lines = screen.wrap(f"{hit.role or '?'}: {hit.snippet}", indent=_INDENT)
    yield from _highlighted(lines, screen)
    yield from (_beside(entry, screen) for entry in result.after)


def _beside(entry: Message, screen: Screen) -> str:
    line = f"{speaker(entry.message)}: {gist(entry.message, entry.author)}"
    width = None if screen.width is None else screen.width - _INDENT
    return screen.paint(" " * _INDENT + fit(line, width), "dim")


def _highlighted(lines: list[str], screen: Screen) -> Iterator[str]:
    """What stands between marks in bold; a match may begin on one line and end on the next."""
    if screen.paint("x", "bold") == "x":
        yield from lines
        return
    inside = False
    for line in lines:
        first, *others = line.split(_MARK)
        shown = [screen.paint(first, "bold yellow") if inside else first]
        for part in others:
            inside = not inside
            shown.append(screen.paint(part, "bold yellow") if inside else part)
        yield "".join(shown)


# -- the index -------------------------------------------------------------------------------------


@click.command(epilog=example("workspace-session reindex"))
@click.option("--engine", type=click.Choice(["whoosh", "sqlite"]), help="Use this from now on.")
@in_workspace
def reindex(scope: Scope, engine: Literal["whoosh", "sqlite"] | None) -> None:
    """Make the search index anew from the logs.

    That is never needed: every search brings the index up to date by itself. It packs an index that
    has grown in many small steps.
    """
    if engine is not None:
        scope.workspace.use_search(engine)
    agents = scope.agents()
    for namespace in _namespaces(agents):
        with _progress(patient=False) as report:
            scope.workspace.searcher.reindex(namespace, report)
    sessions = sum(len(agent.session_ids()) for agent in agents)
    talk(f"indexed {plural(sessions, 'session')} of {plural(len(agents), 'agent')}")


@contextmanager
def _progress(*, patient: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, if that is a terminal; a patient one waits before it shows."""
    columns = (TextColumn("indexing"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty())
    task = bar.add_task("", total=None)

    def report(done: int, total: int) -> None:
        elapsed = bar.tasks[task].elapsed or 0.0
        if not patient or elapsed >= _SLOW_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()
