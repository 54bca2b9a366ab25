"""A reader of workspaces, written from `docs/format.md` alone.

It imports nothing of the library, so that the page is proven to say enough. It is as plain as the page
is, and slow: whoever writes one in another language may begin with this.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class ReadTheLog(Exception):
    """The working set does not say enough."""


# -- ids and file names ------------------------------------------------------------------------------

DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE | re.ASCII)
RESERVED = {"agents", "memory", "knowledge", "skills", "subagents", "agents.md", "memory.md"}


def escaped(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode())


def encoded(text: str, *, user: bool = False) -> str:
    chars = [char if char.isalnum() or char in "_-." else escaped(char) for char in text]
    if text.startswith(".") or DEVICE.match(text) or (user and text.lower() in RESERVED):
        chars[0] = escaped(text[0])
    if text.endswith("."):
        chars[-1] = escaped(".")
    if text[-4:].lower() == ".log":
        chars[-4] = escaped(".")
    return "".join(chars)


def decoded(name: str, *, user: bool = False) -> str | None:
    try:
        text = re.sub(
            b"%([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), name.encode()
        ).decode()
    except UnicodeError:
        return None
    fits = text and "\0" not in text and unicodedata.is_normalized("NFC", text)
    return text if fits and encoded(text, user=user) == name and len(name.encode()) <= 180 else None


def sessions(root: Path) -> dict[tuple[tuple[str, ...], str, str], Path]:
    """The log of every session: by user (and what is above), agent and session."""
    found = {}
    for log in root.glob("**/agents/*/sessions/*.log.jsonl"):
        *users, _agents, agent, _sessions, name = log.relative_to(root).parts
        namespace = tuple(decoded(one, user=True) for one in users)
        key = (namespace, decoded(agent), decoded(name.removesuffix(".log.jsonl")))
        if None not in (*namespace, *key[1:]) and len(users) <= 3:
            found[key] = log
    return found


# -- lines -------------------------------------------------------------------------------------------


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def is_text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return is_whole(value) or isinstance(value, float)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def is_batch(value: Any) -> bool:
    return is_object(value) and is_name(value.get("id")) and is_whole(value.get("size", 0))


def is_covers(value: Any) -> bool:
    return value is None or (
        is_object(value) and all(is_whole(value.get(one, 0)) for one in ("messages", "tokens"))
    )


def is_usage(value: Any) -> bool:
    whole = is_object(value) and all(
        is_whole(value.get(one, 0)) for one in ("inputTokens", "outputTokens")
    )
    return whole and is_number(value.get("cost", 0))


def is_first(value: Any) -> bool:
    return value is None or (
        is_object(value) and is_name(value.get("timestamp")) and is_text(value.get("text"))
    )


NOTHING = object()  # what a field is that is missing

# For each type, what its fields must be; the second is what stands for one that is missing.
FIELDS = {
    "session": {"version": (is_whole, 0), "agent": (is_text_or_null, None), "parentSession": (is_text_or_null, None)},
    "message": {"parentId": (is_text_or_null, None), "author": (is_text_or_null, None), "message": (is_object, NOTHING)},
    "update": {"targetId": (is_name, NOTHING), "message": (is_object, NOTHING)},
    "delete": {"targetIds": (is_texts, NOTHING)},
    "clear": {},
    "compaction": {
        "fromId": (is_name, NOTHING),
        "toId": (is_name, NOTHING),
        "fromParentId": (is_text_or_null, None),
        "summary": (is_text, NOTHING),
        "covers": (is_covers, None),
    },
    "leaf": {"targetId": (is_text_or_null, None)},
    "label": {"targetId": (is_name, NOTHING), "label": (is_text_or_null, None)},
    "info": {},
    "usage": {"inputTokens": (is_whole, 0), "outputTokens": (is_whole, 0), "cost": (is_number, 0.0)},
    "abort": {"batchId": (is_name, NOTHING)},
    "purge": {"targetId": (is_name, NOTHING)},
    "trim": {
        "endId": (is_name, NOTHING),
        "leaf": (is_text_or_null, None),
        "createdAt": (is_name, NOTHING),
        "hidden": (is_whole, 0),
        "kept": (is_whole, 0),
        "first": (is_first, None),
        "usage": (is_usage, NOTHING),
        "parents": (is_object, NOTHING),
        "inner": (is_texts, NOTHING),
    },
}  # fmt: skip
SPENT = ("inputTokens", "outputTokens", "cost")
COMMON = {"type", "id", "timestamp", "batch"}


def entry_of(line: bytes) -> Entry | None:
    """The entry of a line, with all its fields; None if it holds none."""
    text = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
    try:
        entry = json.loads(text, parse_constant=no_constant)
    except ValueError:
        return None
    if not is_object(entry) or not is_name(entry.get("type")) or not is_name(entry.get("id")):
        return None
    time = moment(entry.get("timestamp"))
    batch = entry.get("batch")
    if time is None or (batch is not None and not is_batch(batch)):
        return None
    for name, (fits, missing) in FIELDS.get(entry["type"], {}).items():
        if name not in entry and missing is not NOTHING:
            entry[name] = missing
        if not fits(entry.get(name, NOTHING)):
            return None
    return {**whole(entry), "timestamp": time}


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def moment(text: Any) -> str | None:
    if not is_text(text) or text.startswith("9999-12-31T23:59:59"):
        return None
    try:
        time = datetime.fromisoformat(text)
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    except (ValueError, OverflowError):
        return None


def whole(value: Any) -> Any:
    """The value with U+FFFD for every half character."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    return value


def entries_of(data: bytes) -> list[Entry]:
    """The entries that count, in the order of the file."""
    found = [entry for line in data.split(b"\n")[:-1] if (entry := entry_of(line))]
    trims = [number for number, entry in enumerate(found) if entry["type"] == "trim"]
    start = trims[-1] + 1 if trims else 0
    return found[:start] + without_cut_batches(found[start:])


def without_cut_batches(entries: list[Entry]) -> list[Entry]:
    ids: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    out = {entry["batchId"] for entry in entries if entry["type"] == "abort"}
    for entry in entries:
        if batch := entry.get("batch"):
            ids.setdefault(batch["id"], set()).add(entry["id"])
            sizes[batch["id"]] = batch.get("size", 0)
    out |= {batch for batch, there in ids.items() if len(there) < sizes[batch]}
    return [entry for entry in entries if not entry.get("batch") or entry["batch"]["id"] not in out]


# -- purging -----------------------------------------------------------------------------------------

ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "toolresult": "tool",
    "function": "tool",
}
NAMED = ("user", "assistant", "system", "tool")


def without_purged(entries: list[Entry]) -> list[Entry]:
    """The entries, each without its text if a purge reaches it."""
    purges = [entry for entry in entries if entry["type"] == "purge"]
    return [
        blank(entry) if any(reaches(purge, entry) for purge in purges) else entry
        for entry in entries
    ]


def reaches(purge: Entry, entry: Entry) -> bool:
    target = entry["targetId"] if entry["type"] == "update" else entry["id"]
    return target == purge["targetId"] and key(entry) < key(purge)


def blank(entry: Entry) -> Entry:
    match entry["type"]:
        case "message" | "update":
            return {**entry, "message": blank_message(entry["message"])}
        case "compaction":
            return {**entry, "summary": "[purged]"}
        case "label" if entry["label"] is not None:
            return {**entry, "label": "[purged]"}
        case "info":
            return {name: one if name in COMMON else None for name, one in entry.items()}
        case known if known in FIELDS:
            return entry
    return {name: one for name, one in entry.items() if name in (*COMMON, "customType")}


def blank_message(message: dict[str, Any]) -> dict[str, Any]:
    left = {"id": message["id"]} if is_text(message.get("id")) else {}
    if role := role_of(message):
        left["role"] = role
    left["parts"] = [{"type": "text", "text": "[purged]"}]
    if moment(message.get("createdAt")):
        left["createdAt"] = message["createdAt"]
    return left


def role_of(message: dict[str, Any]) -> str:
    if is_name(role := message.get("role")):
        low = role.casefold()
        return low if low in NAMED else ROLES.get(low, role)
    kind = message.get("type") if is_text(message.get("type")) else ""
    if kind.endswith("_output"):
        return "tool"
    return "assistant" if kind.endswith("_call") or kind in ("reasoning", "program") else ""


# -- folding -----------------------------------------------------------------------------------------


def key(entry: Entry) -> tuple[str, str]:
    return entry["timestamp"], entry["id"]


@dataclass
class Session:
    """What the entries of a session amount to."""

    header: Entry | None = None
    messages: dict[str, Entry] = field(default_factory=dict)  # in the order in which they came
    contents: dict[str, Any] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    tip: str | None = None
    summaries: list[Entry] = field(default_factory=list)  # in use
    labels: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    spent: list[float] = field(default_factory=lambda: [0, 0, 0.0])
    gone: dict[str, str | None] = field(default_factory=dict)
    waiting: dict[str, list[str]] = field(default_factory=dict)
    stand_ins: dict[str, Entry] = field(default_factory=dict)
    hidden: int = 0
    strict: bool = False  # whether there is a log to turn to

    # -- taking entries --

    def take_all(self, entries: list[Entry]) -> Session:
        once = {key(entry): entry for entry in entries}
        once = {key(entry): entry for entry in without_purged(list(once.values()))}
        for one in sorted(once):
            take = getattr(self, "take_" + once[one]["type"], None)
            if take is not None:
                take(once[one])
        return self

    def has(self, message_id: str) -> bool:
        return message_id in self.messages or message_id in self.stand_ins

    def miss(self) -> None:
        if self.strict:
            raise ReadTheLog

    def survivor(self, message_id: str | None) -> str | None:
        while message_id in self.gone:
            message_id = self.gone[message_id]
        return message_id

    def last(self) -> str | None:
        return max(self.messages, key=lambda one: key(self.messages[one]), default=None)

    def take_session(self, entry: Entry) -> None:
        self.header = self.header or entry

    def take_message(self, entry: Entry) -> None:
        name, parent = entry["id"], entry["parentId"]
        if name in self.stand_ins:
            self.miss()
        if self.has(name):
            return
        if parent is not None and not self.has(parent):
            if parent in self.gone:
                parent = self.survivor(parent)
            else:
                self.miss()
                self.waiting.setdefault(parent, []).append(name)
                parent = None
        self.messages[name], self.contents[name] = entry, entry["message"]
        self.parents[name] = parent
        self.gone.pop(name, None)
        self.tip = name
        self.found_by_waiting(name)

    def found_by_waiting(self, name: str) -> None:
        those = self.waiting.pop(name, [])
        if not set(those).isdisjoint(self.way_up(name)):
            self.parents[name] = None
        for one in those:
            if one != name and one in self.messages:
                self.parents[one] = name

    def way_up(self, at: str | None) -> list[str]:
        way: list[str] = []
        while at is not None and at not in way:
            way.append(at)
            at = self.parents[at]
        return way

    def take_update(self, entry: Entry) -> None:
        if entry["targetId"] in self.messages:
            self.contents[entry["targetId"]] = entry["message"]
        else:
            self.miss()

    def take_delete(self, entry: Entry) -> None:
        if self.strict:
            raise ReadTheLog
        targets = {one for one in entry["targetIds"] if one in self.messages}
        survivors = {}
        for one in targets:
            survivors[one] = next((up for up in self.way_up(one) if up not in targets), None)
        for one in targets:
            self.gone[one] = survivors[one]
            del self.messages[one], self.contents[one], self.parents[one]
            self.labels.pop(one, None)
        for child, parent in self.parents.items():
            if parent in targets:
                self.parents[child] = survivors[parent]
        self.summaries = [
            one
            for one in self.summaries
            if one["fromId"] not in targets and one["toId"] not in targets
        ]
        if self.tip in targets:
            self.tip = survivors[self.tip] or self.last()

    def take_clear(self, _entry: Entry) -> None:
        self.gone.update(dict.fromkeys((*self.messages, *self.stand_ins)))
        self.messages, self.contents, self.parents, self.stand_ins = {}, {}, {}, {}
        self.waiting, self.labels, self.summaries, self.tip, self.hidden = {}, {}, [], None, 0

    def take_compaction(self, entry: Entry) -> None:
        if self.strict:
            raise ReadTheLog
        starts = {one["fromId"] for one in self.stand_ins.values()}
        if (entry["fromId"] in self.messages or entry["fromId"] in starts) and entry[
            "toId"
        ] in self.messages:
            self.summaries.append(entry)

    def take_purge(self, _entry: Entry) -> None:
        if self.strict:
            raise ReadTheLog

    def take_leaf(self, entry: Entry) -> None:
        target = entry["targetId"]
        if target is None or self.has(target):
            self.tip = target
        elif target in self.gone:
            self.tip = self.survivor(target) or self.last()
        else:
            self.miss()

    def take_label(self, entry: Entry) -> None:
        if entry["targetId"] not in self.messages:
            self.miss()
        elif entry["label"] is None:
            self.labels.pop(entry["targetId"], None)
        else:
            self.labels[entry["targetId"]] = entry["label"]

    def take_info(self, entry: Entry) -> None:
        facts = {**self.facts, **{name: one for name, one in entry.items() if name not in COMMON}}
        self.facts = {name: one for name, one in facts.items() if one is not None}

    def take_usage(self, entry: Entry) -> None:
        for place, name in enumerate(SPENT):
            self.spent[place] += entry[name]

    # -- what was kept by a trim --

    def take_kept(self, kept: list[Entry], trim: Entry) -> None:
        kept = without_purged(kept)
        here = {entry["id"] for entry in kept if entry["type"] == "message"}
        for entry in kept:
            if entry["type"] == "compaction" and entry["toId"] not in here:
                self.stand_ins[entry["toId"]] = entry
                self.parents[entry["toId"]] = trim["parents"].get(
                    entry["toId"], entry["fromParentId"]
                )
        for entry in sorted({key(one): one for one in kept}.values(), key=key):
            match entry["type"]:
                case "message" if entry["id"] in here - self.messages.keys():
                    self.messages[entry["id"]] = entry
                    self.contents[entry["id"]] = entry["message"]
                    self.parents[entry["id"]] = trim["parents"].get(entry["id"], entry["parentId"])
                case "compaction":
                    self.summaries.append(entry)
                case "label":
                    self.labels[entry["targetId"]] = entry["label"]
                case "session" | "info" | "update":
                    getattr(self, "take_" + entry["type"])(entry)
        self.spent = [trim["usage"].get(name, 0) for name in SPENT]
        self.tip, self.hidden = trim["leaf"], trim["hidden"]

    # -- reading --

    def path(self, leaf: str | None) -> list[str]:
        return self.way_up(leaf)[::-1]

    def children(self, parent: str | None) -> list[str]:
        those = [one for one in self.messages if self.parents[one] == parent]
        return sorted(those, key=lambda one: key(self.messages[one]))

    def leaves(self) -> list[str]:
        return [one for one in self.messages if one not in self.parents.values()]

    def context(self, leaf: str | None) -> list[Any]:
        """The messages that a model is shown."""
        path = self.path(leaf)
        starts = [self.stand_ins[one]["fromId"] if one in self.stand_ins else one for one in path]
        shown, at = [], 0
        while at < len(path):
            for summary in sorted(self.summaries, key=key, reverse=True):
                if summary["fromId"] == starts[at] and summary["toId"] in path[at:]:
                    shown.append(summary_message(summary))
                    at = path.index(summary["toId"], at) + 1
                    break
            else:
                shown.append(self.contents[path[at]])
                at += 1
        return shown


def summary_message(entry: Entry) -> dict[str, Any]:
    return {
        "id": "compaction_" + entry["id"],
        "role": "assistant",
        "parts": [{"type": "text", "text": entry["summary"]}],
        "createdAt": entry["timestamp"],
    }


def read_log(data: bytes) -> Session:
    """A session from its log."""
    entries, session = entries_of(data), Session()
    trims = [entry for entry in entries if entry["type"] == "trim"]
    if trims:
        end = (trims[-1]["timestamp"], trims[-1]["endId"])
        session.take_kept(
            [one for one in entries if key(one) <= end and one["type"] != "trim"], trims[-1]
        )
        entries = [one for one in entries if key(one) > end and one["type"] != "trim"]
    return session.take_all(entries)


def read_working_set(data: bytes) -> Session:
    """A session from its working set alone; `ReadTheLog` where that does not say enough."""
    entries = entries_of(data)
    trims = [number for number, entry in enumerate(entries) if entry["type"] == "trim"]
    if not trims:
        return Session().take_all(entries)
    kept, trim, later = entries[: trims[0]], entries[trims[0]], entries[trims[0] + 1 :]
    end = (trim["timestamp"], trim["endId"])
    if len(trims) > 1 or len(kept) != trim["kept"]:
        raise ReadTheLog
    if any(key(one) > end for one in kept) or any(key(one) <= end for one in later):
        raise ReadTheLog
    session = Session()
    session.take_kept(kept, trim)
    session.strict = True
    return session.take_all(later)
