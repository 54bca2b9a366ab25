"""A session on disk: a tree of messages, an append-only log, any number of writers.

Each operation checks what it was given, says what is to be written, and leaves the writing to
`SessionWriter`. What it was given wrongly raises before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from workspace_session.errors import (
    InvalidCompaction,
    InvalidMessage,
    SessionExists,
    UnknownMessage,
)
from workspace_session.files.layout import AgentPlace
from workspace_session.files.locks import lock_at
from workspace_session.files.memory_files import MemoryFiles, MemoryLog, MemoryPlace
from workspace_session.files.names import encode_id
from workspace_session.files.session_files import SessionFiles
from workspace_session.files.session_view import Search
from workspace_session.files.session_writer import Register
from workspace_session.files.tip_writer import TipWriter
from workspace_session.files.verify import Problem, check_session
from workspace_session.model.canonical import compact as json_bytes
from workspace_session.model.canonical import compact_sorted, parse
from workspace_session.model.clock import stamps
from workspace_session.model.copying import copied_path
from workspace_session.model.entries import (
    Clear,
    Compaction,
    Covers,
    Delete,
    Entry,
    Info,
    Label,
    Leaf,
    Message,
    Other,
    Purge,
    Update,
    Usage,
)
from workspace_session.model.facts import checked_facts, checked_usage, plain_text
from workspace_session.model.lines import compose, compose_other, message_json
from workspace_session.model.offloading import (
    VIEW,
    OffloadResult,
    compare,
    is_summary,
    offloaded,
    view_of,
)
from workspace_session.model.placing import LATEST, Appended, Draft, Parent, drafts, place
from workspace_session.model.purging import blank, has_text, reaches
from workspace_session.model.tokens import estimate_message_tokens
from workspace_session.model.tree import NeedsLog, Shown, Tree


class SessionTree(TipWriter):
    """One session of one agent. Handles are cheap; any number may be open, in any process."""

    @classmethod
    def on_disk(
        cls,
        place: AgentPlace,
        session_id: str,
        *,
        durable: bool = True,
        register: Register | None = None,
        search: Search | None = None,
    ) -> SessionTree:
        """The session of an agent's directory."""
        files = SessionFiles(place, session_id, durable=durable)
        shown = place.layout.shown(files.tree_path)
        lock = lock_at(place.session_lock(session_id), shown=shown)
        return cls(place, session_id, files, lock, register=register, search=search)

    @classmethod
    def in_memory(
        cls,
        session_id: str,
        *,
        agent_id: str = "default",
        log: MemoryLog | None = None,
        register: Register | None = None,
    ) -> SessionTree:
        """A session on no disk; handles that are given the same log see each other's writes."""
        encode_id("session", session_id)  # what can be no id on a disk is none here either
        log = MemoryLog() if log is None else log
        place, files = MemoryPlace(agent_id), MemoryFiles(log)
        return cls(place, session_id, files, log.lock, register=register)

    # -- messages ----------------------------------------------------------------------------------

    def append(
        self,
        message: Mapping[str, Any],
        parent: Parent = LATEST,
        *,
        author: str | None = None,
        own_id: bool = True,
    ) -> Appended:
        """Store a message under `parent`: `LATEST`, None for a new root, or a message's id.

        Its own `id`, if it has one, names it; one that the session already has is left as it is
        and not stored again. `own_id=False` gives it a fresh id whatever it says.
        """
        return self._append(drafts([message], own_ids=own_id), parent, author)[0]

    def extend(
        self,
        messages: Iterable[Mapping[str, Any]],
        parent: Parent = LATEST,
        *,
        author: str | None = None,
        own_id: bool = True,
        ids: Iterable[str] | None = None,
    ) -> list[Appended]:
        """Store messages, each under the one before: all of them or, after a crash, none.

        `ids` names them, whatever they say themselves: what comes in again is then not stored again.
        """
        new = drafts(messages, own_ids=own_id, ids=ids)
        return self._append(new, parent, author) if new else []

    def _append(self, new: list[Draft], parent: Parent, author: str | None) -> list[Appended]:
        author = None if author is None else plain_text("an author", author)

        def make(tree: Tree, after: str) -> tuple[list[Message], list[Appended]]:
            self._look_for_duplicates(tree, new)
            results = place(
                tree, new, parent=parent, author=author, session_id=self.id, after=after
            )
            return [result.entry for result in results if result.inserted], results

        return self._write(make)

    def _look_for_duplicates(self, tree: Tree, new: list[Draft]) -> None:
        """In a trimmed session an id may be taken by a message that only the log holds."""
        if not tree.partial:
            return
        own = [item.id for item in new if item.id is not None and tree.here(item.id) is None]
        if own:
            if self._logged_ids is None:
                self._logged_ids = self._files.message_ids()
            if any(json_bytes(message_id) in self._logged_ids for message_id in own):
                raise NeedsLog(*own)

    def offload(self, messages: Iterable[Mapping[str, Any]]) -> OffloadResult:
        """Store what a conversation, given whole, has that this session has not, in one write.

        New messages hang from the tip; one that has grown or was edited is an update. Giving the same
        conversation again adds nothing.
        """
        given = [offloaded(message) for message in messages]

        def make(tree: Tree, after: str) -> tuple[list[Entry], OffloadResult]:
            self._look_for_duplicates(tree, [one for one in given if not is_summary(one.id)])
            found = compare(tree, given)
            placed = place(
                tree, found.new, parent=LATEST, author=None, session_id=self.id, after=after
            )
            result = found.result([one.entry.id for one in placed], tree.tip)
            new: list[Entry] = [one.entry for one in placed]
            times = iter(stamps(len(found.revisions) + 1, new[-1].timestamp if new else after))
            for target, data in found.revisions:
                timestamp, fresh_id = next(times)
                new.append(
                    compose(
                        Update, id=fresh_id, timestamp=timestamp, target_id=target, message=data
                    )
                )
            if (view := view_of(result)) is not None:
                timestamp, fresh_id = next(times)
                new.append(compose(Info, id=fresh_id, timestamp=timestamp, facts={VIEW: view}))
            return new, result

        with self._lock, self._mutex:
            result = self._write(make)
            return replace(result, dangling=tuple(self.dangling_tool_calls()))

    def update(self, message_id: str, message: Mapping[str, Any]) -> Appended:
        """Give a message new content; its place stays. Equal content writes nothing."""
        data = message_json(message)
        wanted = compact_sorted(parse(data))
        if message.get("id", message_id) != message_id:
            raise InvalidMessage("an update cannot change the id of a message")

        def make(tree: Tree, after: str) -> tuple[list[Entry], Appended]:
            node = self._known(tree, message_id)
            if compact_sorted(node.message) == wanted:
                return [], Appended(node, False)
            update = self._entry(Update, after, target_id=message_id, message=data)
            return [update], Appended(replace(node, revision=update), True)

        return self._write(make)

    def delete(self, message_ids: Iterable[str]) -> list[str]:
        """Remove messages; children move to the nearest ancestor left. Unknown ids are ignored."""
        if isinstance(message_ids, str):
            raise TypeError("delete takes a list of ids, not one id")
        wanted = list(dict.fromkeys(message_ids))

        def make(tree: Tree, after: str) -> tuple[list[Entry], list[str]]:
            known = [message_id for message_id in wanted if tree.get(message_id) is not None]
            entry = self._entry(Delete, after, target_ids=tuple(known))
            return ([entry] if known else []), known

        return self._write(make)

    def clear(self) -> bool:
        """Hide everything so far; the log keeps it. False when there was nothing."""

        def make(tree: Tree, after: str) -> tuple[list[Entry], bool]:
            there = bool(len(tree) or tree.overlays)
            return ([self._entry(Clear, after)] if there else []), there

        return self._write(make)

    def set_leaf(self, message_id: str | None) -> None:
        """Move the tip: the next message hangs from this one. None: before the first message."""

        def make(tree: Tree, after: str) -> tuple[list[Entry], None]:
            if message_id is not None and not tree.has(message_id):
                raise UnknownMessage(self.id, message_id)
            moved = tree.tip != message_id
            return ([self._entry(Leaf, after, target_id=message_id)] if moved else []), None

        self._write(make)

    def switch(self, message_id: str) -> str:
        """Make the newest end of the branches through a message the tip; returns which that is."""

        def make(tree: Tree, after: str) -> tuple[list[Entry], str]:
            if tree.partial:
                raise NeedsLog(message_id)
            leaf = tree.newest_below(self._known(tree, message_id).id)
            moved = tree.tip != leaf
            return ([self._entry(Leaf, after, target_id=leaf)] if moved else []), leaf

        return self._write(make)

    def purge(self, entry_id: str) -> Entry:
        """Take the text of an entry away for good, from both files; its id and its place stay.

        Of a message, or one of its updates, all that was ever said in it goes. What a crash cuts
        short, the next write to the session finishes; to purge again does so too.
        """
        with self._lock, self._mutex:
            self._current()
            target = self._purgeable(entry_id)

            def make(_tree: Tree, after: str) -> tuple[list[Entry], None]:
                purge = self._entry(Purge, after, target_id=target.id)
                full = self._whole().entries
                said = any(reaches(purge, one) and blank(one) is not one for one in full)
                return ([purge] if said else []), None

            self._write(make)
            self.rebuild()
            self._files.remove_leftovers()
        return target

    def _purgeable(self, entry_id: str) -> Entry:
        known = {entry.id: entry for entry in self._whole().entries}
        found = known.get(entry_id)
        if isinstance(found, Update):
            found = known.get(found.target_id)
        if found is None:
            raise UnknownMessage(self.id, entry_id)
        if not has_text(found):
            raise InvalidMessage(f"the {found.type} {entry_id!r} has no text")
        return found

    # -- about messages ----------------------------------------------------------------------------

    def compact(self, summary: str, from_id: str, to_id: str) -> Compaction:
        """Let a summary stand in for the messages from one to another when history is read."""
        overlay = self.compact_if(summary, from_id, to_id, lambda _shown: True)
        assert overlay is not None
        return overlay

    def compact_if(
        self, summary: str, from_id: str, to_id: str, wanted: Callable[[list[Shown]], bool]
    ) -> Compaction | None:
        """The same, if what is shown up to `to_id` is still as the summary was made from."""
        if not isinstance(summary, str) or not summary.strip():
            raise InvalidCompaction(self.id, from_id, to_id, "the summary is blank")
        summary = plain_text("a summary", summary)

        def make(tree: Tree, after: str) -> tuple[list[Entry], Compaction | None]:
            parent, covers = self._range(tree, from_id, to_id)
            if not wanted(tree.context(to_id)):
                return [], None
            overlay = self._entry(
                Compaction,
                after,
                from_id=from_id,
                to_id=to_id,
                from_parent_id=parent,
                summary=summary,
                covers=covers,
            )
            return [overlay], overlay

        return self._write(make)

    def _range(self, tree: Tree, from_id: str, to_id: str) -> tuple[str | None, Covers]:
        if not tree.has(to_id):
            raise InvalidCompaction(self.id, from_id, to_id, f"there is no message {to_id!r}")
        messages = tokens = 0
        for item in reversed(tree.walk(to_id)):
            if isinstance(item, Compaction):
                messages, tokens = messages + item.covers.messages, tokens + item.covers.tokens
                start = item.from_id
            else:
                messages, tokens = messages + 1, tokens + estimate_message_tokens([item.message])
                start = item.id
            if start == from_id:
                return tree.parent_of_start(from_id), Covers(messages, tokens)
        if tree.partial:
            raise NeedsLog(from_id)  # it may be inside of what was trimmed
        reason = f"{from_id!r} is not before {to_id!r} on its branch"
        raise InvalidCompaction(self.id, from_id, to_id, reason)

    def label(self, message_id: str, label: str | None) -> None:
        """Bookmark a message; None takes the bookmark away."""
        label = None if label is None else plain_text("a label", label)

        def make(tree: Tree, after: str) -> tuple[list[Entry], None]:
            self._known(tree, message_id)
            same = tree.labels().get(message_id) == label
            entry = self._entry(Label, after, target_id=message_id, label=label)
            return ([] if same else [entry]), None

        self._write(make)

    # -- about the session -------------------------------------------------------------------------

    def annotate(self, **facts: Any) -> bool:
        """Set facts of the session (`name`, `summary`, `model`, `tags`, …); None clears one.

        Only what differs from what is known is written; False when that is nothing.
        """
        wanted = checked_facts(facts)

        def make(tree: Tree, after: str) -> tuple[list[Entry], bool]:
            known = tree.facts()
            new = {name: value for name, value in wanted.items() if known.get(name) != value}
            return ([self._entry(Info, after, facts=new)] if new else []), bool(new)

        return self._write(make)

    def tag(self, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> list[str]:
        """Give the session tags and take others away; returns those it has then."""
        added, removed = checked_facts({"tags": [*add]})["tags"], set(remove)

        def make(tree: Tree, after: str) -> tuple[list[Entry], list[str]]:
            known = tree.facts().get("tags")
            before = known if isinstance(known, list) else []
            tags = sorted({*before, *added} - removed)
            entry = self._entry(Info, after, facts={"tags": tags or None})
            return ([] if tags == before else [entry]), tags

        return self._write(make)

    def add_usage(
        self, *, input_tokens: int = 0, output_tokens: int = 0, cost: float = 0.0
    ) -> None:
        """Add to what the session has used; cost is in US dollars."""
        usage = checked_usage(input_tokens, output_tokens, cost)._asdict()
        self._write(lambda _tree, after: ([self._entry(Usage, after, **usage)], None))

    def add_custom(self, custom_type: str, data: Any) -> Other:
        """Store something for an extension; no model ever sees it."""
        fields = {"customType": custom_type, "data": data}

        def make(_tree: Tree, after: str) -> tuple[list[Entry], Other]:
            timestamp, fresh_id = stamps(1, after)[0]
            entry = compose_other("custom", fields, id=fresh_id, timestamp=timestamp)
            return [entry], entry

        return self._write(make)

    def verify(self) -> list[Problem]:
        """Everything about this session's files that is not as it should be."""
        return check_session(self.place, self.id) if isinstance(self.place, AgentPlace) else []

    def start(self, *, parent_session: str | None = None, **facts: Any) -> bool:
        """Begin a session before its first message, with facts of it; False if it has begun."""
        wanted = checked_facts(facts)
        parent_session = (
            None if parent_session is None else plain_text("a session id", parent_session)
        )

        def make(tree: Tree, after: str) -> tuple[list[Entry], bool]:
            if tree.headers:
                return [], False
            header = self._header(after, parent_session)
            known = {name: value for name, value in wanted.items() if value is not None}
            info = [self._entry(Info, header.timestamp, facts=known)] if known else []
            return [header, *info], True

        return self._write(make)

    def fork(self, at: str, target: SessionTree, **facts: Any) -> None:
        """Make `target` a new session with the path to a message, its overlays and its labels."""
        wanted = checked_facts(facts)
        with self._mutex:
            self._current()
            whole = self._whole()
            self._known(whole, at)

        def make(tree: Tree, after: str) -> tuple[list[Entry], None]:
            if tree.headers:
                raise SessionExists(target.id)
            return copied_path(whole, at, target._header(after, self.id), wanted, after), None

        target._write(make)
