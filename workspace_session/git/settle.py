"""After a merge: the derived files of the sessions that git has changed follow their logs again.

A merged log is right as it is. A working set that does not fit it is made anew; one that fits is left
alone, so that a merge in which nothing was trimmed leaves nothing to commit. The index goes by the size
of a log, which git may leave as it was while changing the rest: what it says of them is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from workspace_session.agent import AgentWorkspace
from workspace_session.files.layout import Layout, decode_name
from workspace_session.files.listings import LOG, TREE, transcript_id
from workspace_session.files.locks import lock_at
from workspace_session.files.names import decode_namespace_part
from workspace_session.files.verify import is_purged_text
from workspace_session.git.repository import Repository
from workspace_session.workspace import Workspace

_FEW = 20  # sessions of one agent; for more, its whole index is forgotten


class Touched(NamedTuple):
    """A session whose files git has changed, or is about to."""

    agent: AgentWorkspace
    session_id: str

    def __str__(self) -> str:
        user = "" if self.agent.user is None else f" of user {self.agent.user!r}"
        return f"{self.session_id!r} (agent {self.agent.id!r}{user})"


def settle_merge(
    workspace: Workspace, repository: Repository, old: str, new: str, *, index_only: bool = False
) -> int:
    """What a hook does when git has gone from one commit to another; returns the sessions changed.

    `index_only` does not open any session: in the middle of a rebase, git wants every file as it was.
    """
    paths = repository.changed(repository.commit(old), repository.commit(new))
    touched = touched_sessions(workspace, paths)
    if not index_only:
        make_working_sets_fit(touched)
    forget_in_index(touched)
    return len(touched)


# -- which sessions, and their locks ---------------------------------------------------------------


def touched_sessions(workspace: Workspace, paths: Iterable[Path]) -> list[Touched]:
    """The sessions that files belong to, each once."""
    found = {_session(workspace, path): None for path in paths}
    return [Touched(workspace.agent(key[1], namespace=key[0]), key[2]) for key in found if key]


def _session(workspace: Workspace, path: Path) -> tuple[tuple[str, ...], str, str] | None:
    *above, agents, agent, kind, name = ("", "", "", *path.relative_to(workspace.root).parts)
    namespace = tuple(decode_namespace_part(part) for part in above if part)
    agent_id, session_id = decode_name(agent), transcript_id(name)
    if (agents, kind) != ("agents", "sessions") or agent_id is None or session_id is None:
        return None
    known = tuple(part for part in namespace if part is not None)
    return (known, agent_id, session_id) if len(known) == len(namespace) else None


def heads_of(one: Touched) -> int:
    """How many ends a session has; none, if it is not there."""
    tree = one.agent.tree(one.session_id)
    return len(tree.leaves()) if tree.exists() else 0


@contextmanager
def locked(layout: Layout, paths: Iterable[Path]) -> Iterator[None]:
    """Hold the locks of the sessions and states that files belong to."""
    guarded = {found for path in paths if (found := _guarded(layout, path)) is not None}
    _allow_open_files(len(guarded))
    with ExitStack() as stack:
        for place in sorted(guarded):  # in one order, so that two who do this never wait in a ring
            lock = lock_at(layout.lock_of(place), shown=layout.shown(place))
            stack.enter_context(lock)
        yield


def _guarded(layout: Layout, path: Path) -> Path | None:
    """The place, without extension, that the lock of a file is named after."""
    parts = path.relative_to(layout.root).parts[:-1]
    if "agents" in parts and "context" in parts:
        return path.parent
    for suffix in (LOG, TREE):  # the longer one first
        if parts[-1:] == ("sessions",) and path.name.endswith(suffix):
            return path.with_name(path.name.removesuffix(suffix))
    return None


def _allow_open_files(count: int) -> None:
    """Each lock that is held is an open file, and the usual limit is a thousand."""
    try:
        import resource
    except ImportError:  # Windows, where the limit is another
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 200
    if soft != resource.RLIM_INFINITY and soft < wanted:
        wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# -- derived files ---------------------------------------------------------------------------------


def make_working_sets_fit(touched: Iterable[Touched]) -> list[Path]:
    """Make the working sets anew that do not follow from their logs; returns the files made.

    With them goes purged text that a merge without the driver has brought back into a log.
    """
    made: list[Path] = []
    for agent, session_id in touched:
        log, tree = agent.place.log(session_id), agent.place.tree(session_id)
        shown = agent.place.layout.shown(tree)
        if any(one.path == shown or is_purged_text(one) for one in agent.verify(session_id)):
            agent.tree(session_id).rebuild()
            made += [tree, log] if log.exists() else [tree]
    return made


def forget_in_index(touched: Sequence[Touched]) -> None:
    """Mark what the index says of sessions as stale: whoever lists them next reads them."""
    agents = {one.agent.place: one.agent for one in touched}
    for place, agent in agents.items():
        own = [session_id for other, session_id in touched if other.place == place]
        if len(own) > _FEW:
            place.index.unlink(missing_ok=True)
        else:
            for session_id in own:
                agent.index.remove(session_id)
