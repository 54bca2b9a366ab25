"""Any sequence of operations, through any handle, over files that are mistreated: one meaning.

Two handles that stay open, and new ones, work on one session. Between their operations the working
set is deleted, cut, shuffled or trimmed and torn bytes appear at the end of the files. At every moment
all of them show what the naive session shows, and at the end `verify()` names the torn lines alone.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import sys
import tempfile
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path

import naive
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive import NaiveSession, Refused

from workspace_session import LATEST, SessionError, SessionTree, Workspace
from workspace_session.model.entries import Compaction

SESSION = "m3"  # also the id of a message: entries of different types may share an id

ids = st.sampled_from([f"m{number}" for number in range(14)])
handles = st.sampled_from(["left", "right", "new"])
texts = st.sampled_from(["", "hi", "héllo 你好", "two\nlines", "long " * 80])
contents = st.builds(
    lambda role, text: {"role": role, "parts": [{"type": "text", "text": text}]},
    st.sampled_from(["user", "assistant"]),
    texts,
)


LOGGER = logging.getLogger("workspace_session")


class SessionMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        LOGGER.setLevel(logging.ERROR)
        self.directory = Path(tempfile.mkdtemp(prefix="machine-"))
        self.agent = Workspace(self.directory, durability="os").agent("a")
        self.naive = NaiveSession()
        self.count = 0
        self.steps: list[NaiveSession] = []  # before each move of the tip that can be taken back
        self.lagging = False  # whether the working set was made to lack lines
        self.shuffled = False  # whether lines were made to stand in another order
        self.reopen()
        self.tree_file = self.agent.place.tree(SESSION)
        self.log_file = self.agent.place.log(SESSION)

    def teardown(self) -> None:
        LOGGER.setLevel(logging.NOTSET)
        if hasattr(self, "directory"):
            try:
                if sys.exc_info()[0] is None:  # else a step has failed, and that is the news
                    self.end()
            finally:
                shutil.rmtree(self.directory)

    def end(self) -> None:
        """The next write mends everything but the torn lines in the log, which stay reported.

        A batch that was cut short and then moved away from the end takes a rebuild to be noticed.
        """
        self.append(
            "new", "last", {"role": "user", "parts": [{"type": "text", "text": ""}]}, LATEST
        )
        if self.shuffled:
            self.fresh().rebuild()
        for handle in ("left", "right", "new"):
            self.shows_the_same(self.handle(handle))
        broken = [number for number, line in self.lines(self.log_file) if not is_json(line)]
        problems = self.agent.verify(SESSION)
        assert [(problem.path, problem.line) for problem in problems] == [
            ("agents/a/sessions/m3.log.jsonl", number) for number in broken
        ]

    # -- handles --

    @rule()
    def reopen(self) -> None:
        self.handles = {"left": self.fresh(), "right": self.fresh()}

    def fresh(self) -> SessionTree:
        return self.agent.tree(SESSION)

    def handle(self, name: str) -> SessionTree:
        return self.fresh() if name == "new" else self.handles[name]

    # -- operations --

    def target(self, data: st.DataObject) -> str:
        """Mostly a message that is there, sometimes one that is not."""
        there = list(self.naive.parents)
        return data.draw(st.sampled_from(there) | ids if there else ids)

    @rule(name=handles, message_id=ids, content=contents)
    def append_latest(self, name, message_id, content) -> None:
        self.append(name, message_id, content, LATEST)

    @rule(name=handles, message_id=ids, content=contents, data=st.data())
    def append_under(self, name, message_id, content, data) -> None:
        self.append(name, message_id, content, self.target(data))

    @rule(name=handles, message_id=ids, content=contents)
    def append_root(self, name, message_id, content) -> None:
        self.append(name, message_id, content, None)

    def append(self, name, message_id, content, parent) -> None:
        inserted, result = self.both(
            lambda: self.naive.append(message_id, content, plain(parent)),
            lambda: self.handle(name).append({"id": message_id, **content}, parent),
        )
        if result is not None:
            assert (result.entry.id, result.inserted) == (message_id, inserted)
            self.appended(inserted)

    @rule(name=handles)
    def append_without_id(self, name) -> None:
        self.count += 1
        message = {"role": "user", "parts": [{"type": "text", "text": f"fresh {self.count}"}]}
        result = self.handle(name).append(message)
        assert result.inserted
        self.naive.append(result.entry.id, message)
        self.appended()

    @rule(name=handles, some=st.lists(st.tuples(ids, contents), max_size=5), data=st.data())
    def extend(self, name, some, data) -> None:
        parent = data.draw(st.sampled_from([LATEST, LATEST, None, "under"]))
        parent = self.target(data) if parent == "under" else parent
        messages = [{"id": message_id, **content} for message_id, content in some]
        inserted, results = self.both(
            lambda: self.naive.extend(some, plain(parent)),
            lambda: self.handle(name).extend(messages, parent),
        )
        if results is not None:
            assert [result.inserted for result in results] == inserted
            self.appended(any(inserted))

    @rule(name=handles, content=contents, data=st.data())
    def update(self, name, content, data) -> None:
        target = self.target(data)
        changed, result = self.both(
            lambda: self.naive.update(target, content),
            lambda: self.handle(name).update(target, {**content}),
        )
        if result is not None:
            assert result.entry.message == content or not changed
            self.written(changed)

    @rule(name=handles, data=st.data(), count=st.integers(1, 3))
    def delete(self, name, data, count) -> None:
        targets = [self.target(data) for _ in range(count)]
        expected = self.naive.delete(targets)
        assert self.handle(name).delete(targets) == expected
        self.appended(expected)

    @precondition(lambda self: self.naive.parents)
    @rule(name=handles, data=st.data())
    def purge(self, name, data) -> None:
        target = data.draw(st.sampled_from(list(self.naive.parents)))
        self.naive.purge(target)
        self.handle(name).purge(target)
        self.written()

    @precondition(lambda self: len(self.naive.parents) > 3)
    @rule(name=handles)
    def clear(self, name) -> None:
        self.steps.append(deepcopy(self.naive))
        self.naive.clear()
        self.handle(name).clear()
        self.written()

    @rule(name=handles, data=st.data(), to_none=st.integers(0, 5))
    def set_leaf(self, name, data, to_none) -> None:
        target = None if to_none == 0 else self.target(data)
        moved, before = self.naive.tip != target, deepcopy(self.naive)
        self.both(lambda: self.naive.set_leaf(target), lambda: self.handle(name).set_leaf(target))
        if moved and self.naive.tip == target:
            self.steps.append(before)
            self.written()

    @rule(name=handles)
    def pop(self, name) -> None:
        before = deepcopy(self.naive)
        expected = self.naive.pop()
        popped = self.handle(name).pop()
        assert (popped and shown([popped])[0]) == expected
        if expected is not None:
            self.steps.append(before)
            self.written()

    @rule(name=handles, count=st.integers(1, 3), some=st.lists(contents, max_size=2))
    def replace_tail(self, name, count, some) -> None:
        ends = self.naive.ends(self.naive.tip)
        tree = self.handle(name)
        before, tail = deepcopy(self.naive), tree.tail(count)
        kept = ends[: max(len(ends) - count, 0)]
        self.naive.tip = kept[-1] if kept else None
        placed = tree.replace_tail(tail, some)
        for result, content in zip(placed, some, strict=True):
            self.naive.append(result.entry.id, content)
        if some:
            self.appended()
        elif before.tip != self.naive.tip:
            self.steps.append(before)
            self.written()

    @rule(name=handles)
    def undo(self, name) -> None:
        possible = bool(self.steps)
        if possible:
            before = self.steps.pop()
            if self.naive.parents:
                self.naive.tip = before.tip
            else:
                for part in ("parents", "contents", "labels", "tip"):
                    setattr(self.naive, part, getattr(before, part))
                self.naive.overlays = [one for one in before.overlays if not one.disabled]
                self.steps = []
        assert self.handle(name).undo() is possible
        self.written(possible)

    @rule(name=handles, data=st.data())
    def compact(self, name, data) -> None:
        to_id = self.target(data)
        path = self.naive.path(to_id) if to_id in self.naive.parents else []
        from_id = data.draw(st.sampled_from(path)) if path else self.target(data)
        self.compact_range(name, from_id, to_id)

    @rule(name=handles, data=st.data())
    def compact_anything(self, name, data) -> None:
        self.compact_range(name, self.target(data), self.target(data))

    def compact_range(self, name, from_id, to_id) -> None:
        self.count += 1
        summary = f"summary {self.count}"
        _, overlay = self.both(
            lambda: self.naive.compact(summary, from_id, to_id),
            lambda: self.handle(name).compact(summary, from_id, to_id),
        )
        self.written(overlay)

    @rule(name=handles, data=st.data(), label=st.sampled_from(["good", "bad", None]))
    def label(self, name, data, label) -> None:
        target = self.target(data)
        before = dict(self.naive.labels)
        self.both(
            lambda: self.naive.label(target, label), lambda: self.handle(name).label(target, label)
        )
        self.written(before != self.naive.labels)

    @rule(
        name=handles,
        fact=st.sampled_from(["name", "summary", "model", "mood"]),
        value=st.sampled_from(["one", "two", None]),
    )
    def annotate(self, name, fact, value) -> None:
        changes = self.naive.facts.get(fact) != value
        self.naive.annotate({fact: value})
        assert self.handle(name).annotate(**{fact: value}) == changes
        self.written(changes)

    @rule(name=handles, tokens=st.integers(0, 9), cost=st.sampled_from([0.0, 0.1, 0.25]))
    def add_usage(self, name, tokens, cost) -> None:
        self.naive.add_usage(tokens, 1, cost)
        self.handle(name).add_usage(input_tokens=tokens, output_tokens=1, cost=cost)
        self.written()

    def both(self, plainly, really):
        """Do the same in the naive session and in the store: what the one refuses, so does the other."""
        before = self.bytes_of_both()
        try:
            expected = plainly()
        except Refused:
            with pytest.raises(SessionError):
                really()
            assert self.bytes_of_both() == before
            return None, None
        return expected, really()

    # -- the working set --

    @rule(name=handles)
    def trim(self, name) -> None:
        self.handle(name).trim()

    @rule(name=handles)
    def rebuild(self, name) -> None:
        self.handle(name).rebuild()
        self.lagging = False

    @precondition(lambda self: self.log_file.exists())
    @rule()
    def delete_working_set(self) -> None:
        self.tree_file.unlink(missing_ok=True)

    @precondition(lambda self: self.log_file.exists() and not self.shuffled)
    @rule(data=st.data())
    def cut_working_set(self, data) -> None:
        """Crashes between the two writes: the working set lacks its end, which may be torn."""
        content = self.tree_file.read_bytes() if self.tree_file.exists() else b""
        if content and b'"type":"trim"' not in content:
            lost = min(len(content), data.draw(st.integers(0, 400)))
            os.truncate(self.tree_file, len(content) - lost)
            self.lagging = True

    @precondition(lambda self: self.log_file.exists() and not self.lagging)
    @rule(seed=st.integers(0, 9), which=st.sampled_from(["log", "tree", "both"]))
    def shuffle(self, seed, which) -> None:
        """A merge by other hands leaves lines in any order, in a new file."""
        self.shuffled = True
        for kind, file in (("log", self.log_file), ("tree", self.tree_file)):
            if which in (kind, "both") and file.exists():
                content = file.read_bytes()
                *lines, rest = content.split(b"\n")
                random.Random(seed).shuffle(lines)
                replacement = file.with_name(".shuffled")
                replacement.write_bytes(b"\n".join([*lines, rest]))
                replacement.replace(file)

    @precondition(lambda self: self.log_file.exists())
    @rule(data=st.data(), which=st.sampled_from(["log", "tree"]))
    def tear(self, data, which) -> None:
        """A writer died while it wrote: the beginning of a line stands at the end."""
        file = self.log_file if which == "log" else self.tree_file
        line = self.log_file.read_bytes().split(b"\n")[0] or b'{"type":"message","id":"torn"}'
        if file.exists() and file.read_bytes().endswith(b"\n"):
            length = 1 + data.draw(st.integers(0, 999)) * (len(line) - 2) // 1000
            with file.open("ab") as opened:
                opened.write(line[:length])

    @precondition(lambda self: self.log_file.exists())
    @rule(size=st.integers(2, 4), data=st.data())
    def cut_a_batch_short(self, size, data) -> None:
        """A writer died between the lines of a batch: they never count, whatever comes later."""
        self.count += 1
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        batch = {"id": f"batch {self.count}", "size": size}
        with self.log_file.open("ab") as log:
            if not self.log_file.read_bytes().endswith(b"\n"):
                log.write(b"\n")
            for number in range(data.draw(st.integers(1, size - 1))):
                entry = {"type": "message", "id": f"never {self.count} {number}", "timestamp": now}
                more = {"batch": batch, "parentId": self.naive.tip, "message": {}}
                log.write(json.dumps({**entry, **more}).encode() + b"\n")

    @precondition(lambda self: self.tree_file.exists() and not self.lagging)
    @rule()
    def lose_the_log(self) -> None:
        """As long as nothing was trimmed, the working set makes up for it."""
        content = self.tree_file.read_bytes()
        if b'"type":"trim"' not in content and content.endswith(b"\n"):
            self.log_file.unlink(missing_ok=True)

    def written(self, anything: object = True) -> None:
        if anything:
            self.lagging = False

    def appended(self, anything: object = True) -> None:
        """What was appended, or deleted, puts an end to what could be taken back."""
        self.written(anything)
        if anything:
            self.steps = []

    # -- looking --

    @rule(name=handles)
    def look(self, name) -> None:
        self.shows_the_same(self.handle(name))

    @invariant()
    def a_new_handle_shows_the_same(self) -> None:
        if not hasattr(self, "directory"):
            return
        context = self.naive.context(self.naive.tip)
        assert shown(self.fresh().tail(2)) == context[-2:]
        assert self.fresh().leaf == self.naive.tip
        self.shows_the_same(self.fresh())

    def shows_the_same(self, tree: SessionTree) -> None:
        expected = self.naive
        assert tree.leaf == expected.tip
        assert shown(tree.context()) == expected.context(expected.tip)
        assert len(tree) == len(expected.parents)
        assert tree.leaves() == expected.leaves()
        assert tree.labels() == expected.labels
        assert tree.facts() == expected.facts
        assert [overlay.summary for overlay in tree.compactions()] == [
            overlay.summary for overlay in expected.overlays
        ]
        self.same_branches(tree)
        self.same_member(tree)

    def same_branches(self, tree: SessionTree) -> None:
        expected = self.naive
        for message_id, content in expected.contents.items():
            entry = tree.get(message_id)
            assert {"id": message_id, **entry.message} == {"id": message_id, **content}
            assert shown(tree.context(message_id)) == expected.context(message_id)
            assert [entry.id for entry in tree.path(message_id)] == expected.path(message_id)
        for parent in (None, *expected.parents):
            assert [entry.id for entry in tree.children(parent)] == expected.children(parent)

    def same_member(self, tree: SessionTree) -> None:
        member, expected = tree.member(), self.naive
        size = self.log_file.stat().st_size if self.log_file.exists() else 0
        assert member["messageCount"] == len(expected.parents)
        assert member["logBytes"] == size
        first = " ".join(expected.first_user_text().split())
        first = first if len(first) <= 120 else first[:120] + "…"
        assert member["summary"] == expected.facts.get("summary", first)
        assert member.get("labels", {}) == expected.labels
        sums = [member.get(name, 0) for name in ("inputTokens", "outputTokens", "cost")]
        assert sums == pytest.approx(expected.usage)

    # -- helping --

    def bytes_of_both(self) -> tuple[bytes, ...]:
        files = (self.log_file, self.tree_file)
        return tuple(file.read_bytes() if file.exists() else b"" for file in files)

    @staticmethod
    def lines(file: Path) -> list[tuple[int, bytes]]:
        *lines, _rest = file.read_bytes().split(b"\n")
        return [(number, line) for number, line in enumerate(lines, 1) if line]


def plain(parent):
    return naive.LATEST if parent is LATEST else parent


def shown(items) -> list[str]:
    return [
        f"summary:{item.summary}" if isinstance(item, Compaction) else item.id for item in items
    ]


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=max(150, settings().max_examples))
