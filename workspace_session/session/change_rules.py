"""The rules of changing, of overlays and of what is optional that a provider keeps."""

from __future__ import annotations

from typing import Any

from workspace_session.model.clock import normal_time
from workspace_session.model.placing import LATEST
from workspace_session.session.calling import listed
from workspace_session.session.message_rules import is_empty, is_refused
from workspace_session.session.shapes import stored_size
from workspace_session.session.trial import Rules, Trial, ids, same, says

CHANGE_RULES = Rules()
_rule = CHANGE_RULES.rule
_DEEP = 1500  # more messages in a row than Python has stack frames

# -- changing --------------------------------------------------------------------------------------


@_rule("an update replaces role and content; parent, position and time of creation stay")
async def _update(on: Trial) -> None:
    await on.fill(3)
    created = (await on.provider.get_message("m1"))["createdAt"]
    message = says("m1", "new", role="assistant", createdAt=created)
    same("what update_message gives", await on.provider.update_message(message), message)
    same("what get_message gives", await on.provider.get_message("m1"), message)
    same("the path", await on.path(), ["m0", "m1", "m2"])
    same("the tip", await on.tip(), "m2")


@_rule("an update of an unknown message gives None and changes nothing")
async def _no_update(on: Trial) -> None:
    await on.fill(1)
    same("what update_message gives", await on.provider.update_message(says("nobody")), None)
    same("the path", await on.path(), ["m0"])
    same("the unknown message", await on.provider.get_message("nobody"), None)


@_rule("delete_messages gives the ids removed and ignores unknown ones")
async def _delete(on: Trial) -> None:
    await on.fill(3)
    gone = await on.provider.delete_messages(["m1", "nobody", "m1"])
    same("what it gives", list(gone), ["m1"])
    same("what it gives", list(await on.provider.delete_messages(["m1"])), [])
    same("the deleted message", await on.provider.get_message("m1"), None)
    same("whether the id is free", (await on.say("m1")).inserted, True)


@_rule("children of a deleted message hang from its nearest surviving ancestor, in append order")
async def _reattach(on: Trial) -> None:
    for name, parent in (
        ("r", None),
        ("x", "r"),
        ("y", "x"),
        ("c1", "y"),
        ("c2", "r"),
        ("c3", "y"),
    ):
        await on.say(name, parent)
    await on.provider.delete_messages(["x", "y"])
    same("the children", await on.children("r"), ["c1", "c2", "c3"])
    same("the path", await on.path("c1"), ["r", "c1"])
    await on.provider.delete_messages(["r"])
    same("the list of roots", await on.children(None), ["c1", "c2", "c3"])


@_rule("a deleted tip falls back to its nearest surviving ancestor, else to the newest message")
async def _tip(on: Trial) -> None:
    await on.fill(2)
    for name, parent in (("a", "m1"), ("b", "m1"), ("a2", "a")):
        await on.say(name, parent)
    await on.provider.delete_messages(["a2", "a"])
    same("the tip", await on.tip(), "m1")
    for name in ("r1", "r2", "r3"):
        await on.say(name, None)
    await on.provider.delete_messages(["r3"])
    same("the tip", await on.tip(), "r2")


@_rule("a clear removes messages, overlays and tip, and frees the ids")
async def _clear(on: Trial) -> None:
    await on.fill(3)
    await on.provider.add_compaction("sum", "m0", "m1")
    await on.provider.clear_messages()
    await is_empty(on)
    same("inserted", (await on.say("m1", text="anew")).inserted, True)
    same("the path", await on.path(), ["m1"])
    same("the text", await on.text("m1"), "anew")


# -- overlays --------------------------------------------------------------------------------------


@_rule("all overlays are told in the order of their making, superseded ones too")
async def _overlays(on: Trial) -> None:
    await on.fill(6)
    ranges = [("m2", "m3"), ("m0", "m4"), ("m0", "m1"), ("m0", "m1")]
    made = [await on.provider.add_compaction(f"{a}..{b}", a, b) for a, b in ranges]
    found = list(await on.provider.get_compactions())
    same("the list of overlays", found, made)
    same("their ranges", [(o.from_message_id, o.to_message_id) for o in found], ranges)
    same("their summaries", [o.summary for o in found], [f"{a}..{b}" for a, b in ranges])
    same("the number of ids", len({overlay.id for overlay in found}), len(ranges))
    same("whether they have times", all(normal_time(o.created_at) for o in found), True)


@_rule("overlays hide nothing in storage and outlive the messages they were made of")
async def _kept_overlays(on: Trial) -> None:
    await on.fill(3)
    overlay = await on.provider.add_compaction("sum", "m0", "m1")
    same("the text of a hidden message", await on.text("m0"), "hello")
    summary = await on.provider.get_message(f"compaction_{overlay.id}")
    same("the summary as a message", summary, None)
    await on.provider.delete_messages(["m1"])
    same("the list of overlays", list(await on.provider.get_compactions()), [overlay])


@_rule("a summary is no parent")
async def _summary_parent(on: Trial) -> None:
    await on.fill(1)
    overlay = await on.provider.add_compaction("sum", "m0", "m0")
    await is_refused(on, f"compaction_{overlay.id}")


@_rule("paths have no depth limit")
async def _deep(on: Trial) -> None:
    await on.fill(_DEEP)
    same("the length of the path", await on.provider.get_path_length(), _DEEP)
    same("the number of messages", len(await on.path()), _DEEP)
    await on.provider.delete_messages([f"m{number}" for number in range(1, _DEEP - 1)])
    same("the path", await on.path(), ["m0", f"m{_DEEP - 1}"])


# -- what is optional ------------------------------------------------------------------------------


@_rule("set_leaf makes any message the tip until the next append", needs="set_leaf")
async def _set_leaf(on: Trial) -> None:
    await on.fill(4)
    same("what it gives", (await on.provider.set_leaf("m1"))["id"], "m1")
    same("the tip", await on.tip(), "m1")
    same("the path", await on.path(), ["m0", "m1"])
    await on.say("b")
    same("the path", await on.path(), ["m0", "m1", "b"])


@_rule(
    "get_row_stats tells id, role and compact JSON size of the active path", needs="get_row_stats"
)
async def _row_stats(on: Trial) -> None:
    messages = [says(f"m{n}", "é" * n, createdAt="2020-01-01T00:00:00Z") for n in range(3)]
    for message in messages:
        await on.provider.append_message(message, LATEST)
    rows = [(row.id, row.role, row.bytes) for row in await on.provider.get_row_stats()]
    same("the rows", rows, [(one["id"], "user", stored_size(one)) for one in messages])


@_rule("get_recent_history gives the longest raw end that fits", needs="get_recent_history")
async def _recent(on: Trial) -> None:
    same("that of nothing", _told(await on.provider.get_recent_history(9, 1)), ([], False, 0))
    for number in range(4):
        await on.say(f"m{number}", createdAt="2020-01-01T00:00:00Z")
    one = stored_size(says("m0", createdAt="2020-01-01T00:00:00Z"))
    await on.provider.add_compaction("sum", "m0", "m3")
    for budget, least, count in ((4 * one, 1, 4), (4 * one - 1, 1, 3), (0, 1, 1), (0, 2, 2)):
        found = _told(await on.provider.get_recent_history(budget, least))
        wanted = ([f"m{number}" for number in range(4 - count, 4)], count < 4, 4 * one)
        same(f"that of {budget} bytes and at least {least}", found, wanted)


def _told(recent: Any) -> tuple[list[str], bool, int]:
    return ids(recent.messages), recent.truncated, recent.total_content_bytes


@_rule("iter_messages gives the messages of all branches, each once", needs="iter_messages")
async def _every(on: Trial) -> None:
    await on.fill(3)
    await on.say("b", "m0")
    await on.say("r", None)
    found = await listed(on.provider.iter_messages())
    same("the messages", sorted(ids(found)), ["b", "m0", "m1", "m2", "r"])


@_rule("lock can be entered again after it was left", needs="lock")
async def _lock(on: Trial) -> None:
    for _ in range(2):
        async with on.provider.lock() as had:
            same("whether it was had", had is not False, True)
