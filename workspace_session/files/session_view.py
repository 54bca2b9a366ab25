"""What a session holds, kept current with its files.

Reading takes no lock and writes nothing but caches. Every call first takes in what other writers have
added, which costs one `stat` when that is nothing. The end of a long session is read from the end of
the file as long as nothing else was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar, Unpack

from workspace_session.errors import (
    InvalidId,
    SearchNotSupported,
    SessionDeleted,
    UnknownMessage,
)
from workspace_session.files.forks import keep_over_forks
from workspace_session.files.jsonl import MANY, collector_paused
from workspace_session.files.locks import Mutex
from workspace_session.files.session_files import SessionFiles
from workspace_session.model.entries import (
    Compaction,
    Entry,
    Header,
    Message,
    Spent,
    Update,
    contents,
)
from workspace_session.model.hits import Filters, SearchHits
from workspace_session.model.info import SessionInfo, from_member, member
from workspace_session.model.tail import last_messages
from workspace_session.model.tree import NeedsLog, Shown, Tree

T = TypeVar("T")
Search = Callable[..., SearchHits]


class Place(Protocol):
    """Whose sessions these are."""

    @property
    def agent_id(self) -> str: ...
    @property
    def namespace(self) -> tuple[str, ...]: ...
    def refuse_twins(self, session_id: str) -> None: ...


class SessionView:
    """One session of one agent, for reading."""

    def __init__(
        self, place: Place, session_id: str, files: SessionFiles, *, search: Search | None = None
    ) -> None:
        self.id = session_id
        self._search = search
        self.place = place
        self._files = files
        self._mutex = Mutex(session_id)
        self._deleted = False
        self._headers: set[str] = set()
        self._forget()
        keep_over_forks(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r} of agent {self.place.agent_id!r})"

    # -- keeping current ---------------------------------------------------------------------------

    def renew_in_child(self) -> None:
        """Know nothing: another thread may have been about to change what is known."""
        self._forget()

    def _forget(self) -> None:
        self._files.forget()
        self._working: Tree | None = None  # what the working set on disk means
        self._full: Tree | None = None  # what the log means, if that was needed
        self._logged_ids: set[bytes] | None = None

    def _current(self, *, locked: bool = False) -> Tree:
        """The tree, with everything that other writers have added."""
        if self._deleted:
            raise SessionDeleted(self.id)
        if self._working is None:
            return self._load()
        entries = self._files.changes(locked=locked)
        if entries is None:
            return self._load()
        if entries:
            try:
                self._working.add(entries)
                if self._full is not None:
                    self._full.add(entries)
            except NeedsLog:
                return self._load()
            self._headers.update(self._working.headers)
        return self._working

    def _load(self, *, from_log: bool = False) -> Tree:
        take_last_line = self._files.take_last_line
        self._forget()
        self._files.take_last_line = take_last_line
        with collector_paused():
            tree = self._read(from_log=from_log)
        self._check_identity(tree)
        self._files.sealable = not tree.peculiar
        if tree.in_order and not tree.withheld:
            self._files.remember_order()
        else:
            self._files.ragged = True
        self._working = tree
        return tree

    def _read(self, *, from_log: bool) -> Tree:
        loaded = self._files.load(from_log=from_log)
        try:
            tree = Tree.of(loaded.kept, loaded.trim) if loaded.trim else Tree.of_log(loaded.later)
            if loaded.trim:
                tree.add(loaded.later)
            if tree.orphans():
                raise NeedsLog("a parent that the working set lacks")
        except NeedsLog:
            self._files.ragged = True
            tree = Tree.of_log(self._files.read_log() or [*loaded.kept, *loaded.later])
        return tree

    def _check_identity(self, tree: Tree) -> None:
        """See that this is still the session that was opened, and not one of another name."""
        if self._headers and self._headers.isdisjoint(tree.headers):
            self._deleted = True
            raise SessionDeleted(self.id)
        for header in tree.headers.values():
            if header.id != self.id and header.id.casefold() == self.id.casefold():
                raise InvalidId("session", self.id, f'differs only in case from "{header.id}"')
        self._headers.update(tree.headers)

    def _whole(self) -> Tree:
        """The tree of the whole log."""
        assert self._working is not None
        if not self._working.partial:
            return self._working
        if self._full is None:
            with collector_paused():
                trim = [self._working.trim] if self._working.trim else []
                entries = self._files.read_log() or [*self._working.entries, *trim]
                self._full = Tree.of_log(entries)
        return self._full

    def _ask(self, question: Callable[[Tree], T]) -> T:
        """The answer of the session as it is now."""
        self._current()
        return self._answer(question)

    def _answer(self, question: Callable[[Tree], T]) -> T:
        """The answer of the working set, and of the log where the working set cannot tell."""
        assert self._working is not None
        try:
            return question(self._working)
        except NeedsLog:
            return question(self._whole())

    @property
    def is_warm(self) -> bool:
        """Whether the session is in memory already, so that what is asked costs little."""
        return self._working is not None

    @property
    def latest(self) -> str:
        """The time of the newest entry that this handle has seen."""
        return self._working.newest[0] if self._working is not None else ""

    @property
    def size_hint(self) -> int:
        """About how many messages are in memory."""
        return len(self._working.entries) if self._working is not None else 0

    @property
    def bytes_hint(self) -> int:
        """About how many bytes they are."""
        return self._files.tree_size or self._files.log_size

    @property
    def identity(self) -> object:
        """What all handles of this session have in common, in this process."""
        return self._files.identity

    # -- reading -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether anything was ever written to this session."""
        return self._files.exist()

    def __len__(self) -> int:
        """Messages on all branches; deleted and cleared ones do not count."""
        with self._mutex:
            return len(self._current())

    @property
    def leaf(self) -> str | None:
        """The tip of the active branch: what the next message will hang from."""
        with self._mutex:
            if self._working is None and (end := self._end(1)) is not None:
                return end[0].id if end else None
            return self._current().tip

    @property
    def leaf_message(self) -> Message | None:
        """The message that `leaf` names."""
        with self._mutex:
            if self._working is None and (end := self._end(1)) is not None:
                return end[0] if end else None
            return self._ask(lambda tree: tree.get(tree.tip) if tree.tip is not None else None)

    def leaves(self) -> list[str]:
        """The messages that have no children, oldest first."""
        with self._mutex:
            return self._ask(Tree.leaves)

    def heads(self) -> list[str]:
        """Where a reader may stand: the leaves, and the tip if it is none of them."""
        with self._mutex:
            return self._ask(Tree.heads)

    def get(self, message_id: str) -> Message:
        """A message, also one that a summary hides; `UnknownMessage` if there is none."""
        with self._mutex:
            return self._ask(lambda tree: self._known(tree, message_id))

    def children(self, message_id: str | None) -> list[Message]:
        """What hangs directly from a message (None: the roots), in the order of appending."""
        with self._mutex:
            return self._ask(lambda tree: tree.children(message_id))

    def path(self, leaf: str | None = None) -> list[Message]:
        """The messages from the root to `leaf` (None: the tip) as they were said."""
        with self._mutex:
            return self._ask(lambda tree: tree.path(self._leaf_or_tip(tree, leaf)))

    def context(self, leaf: str | None = None) -> list[Shown]:
        """The same with summaries in place of what they cover: what a model is shown."""
        with self._mutex:
            return self._ask(lambda tree: tree.context(self._leaf_or_tip(tree, leaf)))

    def messages(
        self,
        leaf: str | None = None,
        *,
        last: int | None = None,
        summary: Callable[[Compaction], dict[str, Any]] | None = None,
    ) -> list[dict[str, Any]]:
        """The messages of `context()`, ready to be given to a model: fresh objects, all yours.

        `last` asks for so many of its end; `summary` gives the message of a compaction another form.
        """
        shown = self.context(leaf) if last is None else self.tail(last)
        with collector_paused(len(shown) > MANY):
            return contents(shown, summary)

    def tail(self, count: int) -> list[Shown]:
        """The last of `context()`."""
        with self._mutex:
            if count <= 0:
                return []
            if self._working is None and (end := self._end(count)) is not None:
                return list(end)
            return self._ask(lambda tree: tree.tail(tree.tip, count))

    def versions(self, message_id: str) -> list[Message]:
        """All that a message has ever said, the first first."""
        with self._mutex:
            self._current()
            tree = self._whole()
            node = replace(self._known(tree, message_id), revision=None)
            later = (one for one in tree.entries if one.key > node.key)
            updates = (one for one in later if isinstance(one, Update))
            mine = [one for one in updates if one.target_id == message_id]
            return [node, *(replace(node, revision=update) for update in mine)]

    def path_length(self, leaf: str | None = None) -> int:
        """The number of messages of `path()`."""
        return len(self.path(leaf))

    def all_messages(self) -> list[Message]:
        """The messages of all branches, oldest first."""
        with self._mutex:
            return self._ask(Tree.messages)

    def appended_since(
        self, tip: str | None
    ) -> tuple[tuple[int, int], str | None, list[Message] | None]:
        """A mark that changes with everything but appends, the tip, and what is new before it."""
        with self._mutex:
            tree = self._current()
            return (tree.serial, tree.upheavals), tree.tip, tree.appended_since(tip)

    def compactions(self) -> list[Compaction]:
        """Every summary ever made since the last clear, also superseded ones, oldest first."""
        with self._mutex:
            return self._ask(Tree.compactions)

    def dangling_tool_calls(self) -> list[str]:
        """The ids of tool calls before the tip that have no result."""
        with self._mutex:
            return self._ask(Tree.dangling_tool_calls)

    def labels(self) -> dict[str, str]:
        """Bookmarks: message id to text."""
        with self._mutex:
            return self._current().labels()

    def facts(self) -> dict[str, Any]:
        """What `annotate` said, the newest value of each fact."""
        with self._mutex:
            return self._current().facts()

    def check(self) -> None:
        """Raise `SessionDeleted` if what this handle has met is gone; of the session a line is read."""
        with self._mutex:
            if self._working is not None or self._deleted:
                self._current()
            else:
                self._check_header(self._files.read_header())

    def usage(self) -> Spent:
        """What `add_usage` said, summed."""
        with self._mutex:
            return self._current().spent

    def header(self) -> Header | None:
        """The first line of the session."""
        with self._mutex:
            return next(iter(self._current().headers.values()), None)

    def orphans(self) -> list[Message]:
        """Messages whose parent is nowhere; they stand as roots."""
        with self._mutex:
            return self._current().orphans()

    def log(self) -> Iterator[Entry]:
        """Everything that ever happened, in order; entries of unfinished batches left out."""
        with self._mutex:
            self._current()
            return iter(list(self._whole().entries))

    def whole(self, question: Callable[[Tree], T]) -> T:
        """The answer of all branches, as they are at one moment.

        The question is a function of the tree alone; it must neither keep the tree nor wait.
        """
        with self._mutex:
            self._current()
            return question(self._whole())

    def search(self, query: str, limit: int | None = 20, **filters: Unpack[Filters]) -> SearchHits:
        """The messages of all branches that have all words of a query, the best first.

        A `"quoted part"` counts as it stands. What summaries hide is found too.
        """
        if self._search is None:
            raise SearchNotSupported
        return self._search(query, limit, **filters)

    def info(self) -> SessionInfo:
        """The facts of the session."""
        user = "/".join(self.place.namespace) or None
        return from_member(self.id, self.member(), agent_id=self.place.agent_id, user_id=user)

    def member(self) -> dict[str, Any]:
        """The session's member of `sessions.json`."""
        with self._mutex:
            return member(self._current(), self._files.log_size)

    @property
    def working_set_bytes(self) -> int:
        """The size of what the model sees, as it was last seen."""
        return self._files.tree_size

    # -- helping -----------------------------------------------------------------------------------

    def _end(self, count: int) -> list[Message] | None:
        if self._deleted:
            raise SessionDeleted(self.id)
        entries = self._files.newest_first()
        if entries is None:
            return None
        self._check_header(self._files.read_header())
        return last_messages(entries, count)

    def _check_header(self, first: Entry | None) -> None:
        """The same as `_check_identity`, from the first line alone."""
        stamp = first.timestamp if isinstance(first, Header) else None
        if self._headers and stamp not in self._headers:
            self._load()
        if stamp is not None:
            self._headers.add(stamp)

    def _known(self, tree: Tree, message_id: str) -> Message:
        node = tree.get(message_id)
        if node is None:
            raise UnknownMessage(self.id, message_id)
        return node

    def _leaf_or_tip(self, tree: Tree, leaf: str | None) -> str | None:
        if leaf is not None and not tree.has(leaf):
            raise UnknownMessage(self.id, leaf)
        return tree.tip if leaf is None else leaf
