"""The rules of appending and reading that a provider keeps."""

from __future__ import annotations

import asyncio

from workspace_session.errors import UnknownParent
from workspace_session.model.clock import normal_time
from workspace_session.model.placing import LATEST
from workspace_session.session.trial import Differs, Rules, Trial, same, says

MESSAGE_RULES = Rules()
_rule = MESSAGE_RULES.rule
_AT_ONCE = 20

# -- appending -------------------------------------------------------------------------------------


@_rule("an empty session has no tip, no path, no roots and no overlays")
async def is_empty(on: Trial) -> None:
    same("the tip", await on.tip(), None)
    same("the path", await on.path(), [])
    same("the list of roots", await on.children(None), [])
    same("the length of the path", await on.provider.get_path_length(), 0)
    same("the list of overlays", await on.provider.get_compactions(), [])


@_rule("a message comes back as it went in")
async def _round_trip(on: Trial) -> None:
    own = {"b": [1, None, 2.5, ""], "a": "é 你好 😀"}
    message = says("m0", createdAt="2020-01-01T00:00:00Z", own=own)
    result = await on.provider.append_message(message, LATEST)
    same("what append_message gives", result.message, message)
    same("what get_message gives", await on.provider.get_message("m0"), message)
    same("what get_history gives", await on.provider.get_history(), [message])


@_rule("a session has nothing in common with others")
async def _apart(on: Trial) -> None:
    await is_empty(on)  # by now another session has had a message m0
    same("inserted", (await on.say("m0")).inserted, True)
    same("the path", await on.path(), ["m0"])


@_rule("a message without a time carries that of its appending")
async def _time(on: Trial) -> None:
    first = (await on.say("m0")).message.get("createdAt")
    same("whether createdAt is a time", normal_time(first) is not None, True)
    later = ((await on.provider.get_message("m0")) or {}).get("createdAt")
    same("createdAt when read later", later, first)


@_rule("LATEST continues the active branch")
async def _latest(on: Trial) -> None:
    await on.fill(3)
    same("the path", await on.path(), ["m0", "m1", "m2"])


@_rule("the parent None makes a new root")
async def _root(on: Trial) -> None:
    await on.fill(2)
    same("inserted", (await on.say("r", None)).inserted, True)
    same("the path", await on.path(), ["r"])
    same("the path to the other root's leaf", await on.path("m1"), ["m0", "m1"])


@_rule("a message under a parent with children starts a branch and makes it the active one")
async def _branch(on: Trial) -> None:
    await on.fill(3)
    await on.say("b", "m0")
    same("the path", await on.path(), ["m0", "b"])
    await on.say("c")
    same("the path", await on.path(), ["m0", "b", "c"])
    await on.say("m3", "m2")
    same("the path", await on.path(), ["m0", "m1", "m2", "m3"])


@_rule("an unknown parent raises UnknownParent and nothing is written")
async def _unknown_parent(on: Trial) -> None:
    await on.fill(1)
    for parent in ("nobody", ""):
        await is_refused(on, parent)
        same("what is stored", await on.provider.get_message("x"), None)
        same("the path", await on.path(), ["m0"])


async def is_refused(on: Trial, parent: str) -> None:
    try:
        await on.say("x", parent)
    except UnknownParent:
        return
    raise Differs(f"a message under {parent!r} was accepted")


@_rule("a duplicate id changes nothing: first content and first parent stay, inserted is False")
async def _duplicate(on: Trial) -> None:
    await on.fill(3)
    for parent in (LATEST, None, "m2", "nobody"):  # it is told before the parent is looked at
        result = await on.say("m1", parent, text="other")
        same("inserted", result.inserted, False)
        same("the text given back", result.message["parts"][0]["text"], "hello")
    same("the stored text", await on.text("m1"), "hello")
    same("the path", await on.path(), ["m0", "m1", "m2"])


@_rule("finding the latest leaf and writing are one step")
async def _atomic(on: Trial) -> None:
    await asyncio.gather(*(on.say(f"m{number}") for number in range(_AT_ONCE)))
    same("the length of the path", await on.provider.get_path_length(), _AT_ONCE)


# -- reading ---------------------------------------------------------------------------------------


@_rule("a message that is not there is None")
async def _absent(on: Trial) -> None:
    await on.fill(1)
    same("an unknown message", await on.provider.get_message("nobody"), None)


@_rule("get_history gives the raw path to any message, and nothing for an unknown one")
async def _history(on: Trial) -> None:
    await on.fill(4)
    await on.say("b", "m1")
    await on.provider.add_compaction("sum", "m0", "m1")
    same("the path", await on.path(), ["m0", "m1", "b"])
    same("the path to an inner message", await on.path("m2"), ["m0", "m1", "m2"])
    same("the path to an unknown message", await on.path("nobody"), [])


@_rule("get_path_length counts the raw path, and 0 for an unknown message")
async def _length(on: Trial) -> None:
    await on.fill(4)
    await on.provider.add_compaction("sum", "m0", "m2")
    same("the length", await on.provider.get_path_length(), 4)
    same("the length to an inner message", await on.provider.get_path_length("m1"), 2)
    same("the length to an unknown message", await on.provider.get_path_length("nobody"), 0)


@_rule("get_branches gives direct children in the order of appending, and the roots for None")
async def _branches(on: Trial) -> None:
    await on.fill(1)
    for name in ("z", "a", "k"):
        await on.say(name, "m0")
    await on.say("below", "z")
    same("the children", await on.children("m0"), ["z", "a", "k"])
    same("the children of a leaf", await on.children("k"), [])
    same("the children of nobody", await on.children("nobody"), [])
    await on.say("r", None)
    same("the list of roots", await on.children(None), ["m0", "r"])
