"""Session providers as an application might write them: one list of messages, no cleverness.

`PlainProvider` has what is required and is sync; `AsyncProvider` is the same with coroutines;
`FullProvider` has all that is optional too.
"""

from __future__ import annotations

import asyncio
import copy
import json
from contextlib import asynccontextmanager
from dataclasses import replace

from workspace_session import (
    LATEST,
    AppendResult,
    Compaction,
    RecentHistory,
    RowStat,
    UnknownParent,
)


class PlainProvider:
    def __init__(self):
        self.messages = {}  # by id, in the order of appending
        self.parents = {}
        self.tip = None
        self.compactions = []
        self.made = 0

    # -- reading --

    def get_message(self, message_id):
        return copy.deepcopy(self.messages.get(message_id))

    def get_history(self, leaf_id=None):
        return [self.get_message(one) for one in self.path(leaf_id)]

    def path(self, leaf_id=None):
        at = self.tip if leaf_id is None else leaf_id
        found = []
        while at in self.messages:
            found.append(at)
            at = self.parents[at]
        return found[::-1]

    def get_latest_leaf(self):
        return self.get_message(self.tip)

    def get_branches(self, message_id):
        if message_id is not None and message_id not in self.messages:
            return []
        return [self.get_message(one) for one in self.messages if self.parents[one] == message_id]

    def get_path_length(self, leaf_id=None):
        return len(self.path(leaf_id))

    # -- writing --

    def now(self):
        self.made += 1
        return f"2026-01-01T00:00:00.{self.made:06d}Z"

    def append_message(self, message, parent_id=LATEST):
        if message["id"] in self.messages:
            return AppendResult(self.get_message(message["id"]), False)
        if parent_id is LATEST:
            parent_id = self.tip
        elif parent_id is not None and parent_id not in self.messages:
            raise UnknownParent("of a provider", parent_id)
        self.messages[message["id"]] = {"createdAt": self.now(), **message}
        self.parents[message["id"]] = parent_id
        self.tip = message["id"]
        return AppendResult(self.get_message(message["id"]), True)

    def update_message(self, message):
        old = self.messages.get(message["id"])
        if old is None:
            return None
        self.messages[message["id"]] = {**message, "createdAt": old["createdAt"]}
        return self.get_message(message["id"])

    def delete_messages(self, message_ids):
        gone = [one for one in dict.fromkeys(message_ids) if one in self.messages]
        kept = self.messages.keys() - set(gone)
        survivors = {one: self.survivor(one, kept) for one in [*self.messages, self.tip]}
        self.parents = {
            one: survivors.get(self.parents[one]) for one in self.messages if one in kept
        }
        self.messages = {one: self.messages[one] for one in self.messages if one in kept}
        if self.tip not in kept:
            self.tip = survivors[self.tip] or next(reversed(self.messages), None)
        return gone

    def survivor(self, message_id, kept):
        while message_id is not None and message_id not in kept:
            message_id = self.parents[message_id]
        return message_id

    def clear_messages(self):
        self.messages, self.parents, self.compactions, self.tip = {}, {}, [], None

    def add_compaction(self, summary, from_id, to_id):
        overlay = Compaction(f"overlay-{self.made}", summary, from_id, to_id, self.now())
        self.compactions.append(overlay)
        return overlay

    def get_compactions(self):
        return list(self.compactions)


REQUIRED = (
    "get_message", "get_history", "get_latest_leaf", "get_branches", "get_path_length",
    "append_message", "update_message", "delete_messages", "clear_messages", "add_compaction",
    "get_compactions",
)  # fmt: skip


class AsyncProvider:
    """Every method lets others run, and then does its work in one step."""

    def __init__(self):
        self.plain = PlainProvider()

    def __getattr__(self, name):
        if name not in REQUIRED:
            raise AttributeError(name)

        async def later(*args):
            await asyncio.sleep(0)
            return getattr(self.plain, name)(*args)

        return later


class FullProvider(PlainProvider):
    session_id = "full"

    def __init__(self):
        super().__init__()
        self.locked = asyncio.Lock()

    def set_leaf(self, message_id):
        self.tip = message_id
        return self.get_message(message_id)

    def delete_messages(self, message_ids):
        gone = super().delete_messages(message_ids)
        self.compactions = [
            replace(one, retired=True)
            if {one.from_message_id, one.to_message_id} & set(gone)
            else one
            for one in self.compactions
        ]
        return gone

    def get_row_stats(self):
        return [RowStat(one["id"], one["role"], size(one)) for one in self.get_history()]

    def get_recent_history(self, max_content_bytes, min_recent_messages):
        rows, used, start = self.get_row_stats(), 0, self.get_path_length()
        least = max(1, int(min_recent_messages))
        while start and (
            len(rows) - start < least or used + rows[start - 1].bytes <= max_content_bytes
        ):
            start -= 1
            used += rows[start].bytes
        total = sum(row.bytes for row in rows)
        return RecentHistory(self.get_history()[start:], start > 0, total)

    async def iter_messages(self):
        for message_id in list(self.messages):
            yield self.get_message(message_id)

    @asynccontextmanager
    async def lock(self):
        async with self.locked:
            yield


def size(message):
    return len(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())
