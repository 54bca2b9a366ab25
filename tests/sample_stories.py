"""What is said in the sample workspace: a house that needs a heat pump, a weekend in Porto.

The researcher writes UI messages with `parts`, the guide chat completions, and one session came from an
agent that writes Anthropic blocks. Makers, prices and shops are invented.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from workspace_session import SessionTree


class Clock(Protocol):
    def wait(self, seconds: float) -> None: ...


class Told:
    """A session while its story is told: each speaker takes the time that it takes."""

    def __init__(self, tree: SessionTree, clock: Clock) -> None:
        self.tree, self.clock = tree, clock

    def add(self, seconds: float, message: dict[str, Any], **where: Any) -> str:
        self.clock.wait(seconds)
        return self.tree.append(message, **where).entry.id

    # -- UI messages --

    def user(self, text: str, seconds: float = 74, **where: Any) -> str:
        return self.add(seconds, {"role": "user", "parts": [_text(text)]}, **where)

    def says(self, text: str, seconds: float = 6, thinking: str = "", **where: Any) -> str:
        thought = [{"type": "reasoning", "text": thinking}] if thinking else []
        return self.add(seconds, {"role": "assistant", "parts": [*thought, _text(text)]}, **where)

    def uses(self, *calls: tuple[str, str, dict[str, Any], Any], seconds: float = 4) -> str:
        parts = [
            {
                "type": f"tool-{name}",
                "toolCallId": call_id,
                "state": "output-available",
                "input": given,
                "output": gave,
            }
            for name, call_id, given, gave in calls
        ]
        return self.add(seconds, {"role": "assistant", "parts": parts})

    # -- chat completions --

    def chat(self, role: str, content: str, seconds: float = 0, **where: Any) -> str:
        wait = seconds or {"user": 52, "assistant": 5}.get(role, 2)
        return self.add(wait, {"role": role, "content": content}, **where)

    def asks(self, name: str, call_id: str, given: dict[str, Any]) -> str:
        function = {"name": name, "arguments": json.dumps(given, ensure_ascii=False)}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return self.add(3, {"role": "assistant", "content": None, "tool_calls": calls})

    def answers(self, call_id: str, gave: Any) -> str:
        content = json.dumps(gave, ensure_ascii=False)
        return self.add(1, {"role": "tool", "tool_call_id": call_id, "content": content})


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


# -- the researcher --------------------------------------------------------------------------------

TABLE = """\
Three makers publish sound power at **A-7/W55**, measured after EN 12102:

| unit | at full load | in night mode | source |
|---|---|---|---|
| Nordlys 8 | **48 dB(A)** | 43 dB(A) | data sheet, p. 3 |
| Alba Mono 9 | 51 dB(A) | 46 dB(A) | data sheet, p. 2 |
| Terma AX7 | 57 dB(A) | 50 dB(A) | brochure, no protocol |

The first two were measured by an independent laboratory; the third figure is the maker's own. I would
look no further than the first two."""

PAGE = """\
Nordlys 8 - technical data

Heating capacity A-7/W35      7.6 kW
Heating capacity A-7/W55      7.1 kW
COP A-7/W35                   3.02
Sound power A7/W55            44 dB(A)
Sound power A-7/W55           48 dB(A)
Sound power, night mode       43 dB(A)
Refrigerant                   R290, 1.15 kg
Fuse                          C16 A, three-phase
Weight                        148 kg
Protective zone               1 m on all sides, no openings below ground
"""


def heat_pumps(told: Told) -> None:
    """A long one: tools, a table, two branches, a summary, labels."""
    tree = told.tree
    first = told.user(
        "We want to replace the gas boiler in a house from 1978. The neighbours' bedroom window is "
        "6 m from where the unit would stand. Which heat pumps stay quiet when it is really cold?",
        1,
    )
    told.uses(
        (
            "web_search",
            "call_4Kd1",
            {"query": "air-water heat pump sound power A-7/W55 EN 12102", "results": 3},
            [
                {"title": "Nordlys 8, technical data", "url": "https://nordlys.example/8/data"},
                {"title": "Alba Mono 9", "url": "https://alba.example/mono-9"},
                {"title": "The Terma AX series", "url": "https://terma.example/ax.pdf"},
            ],
        )
    )
    read = told.uses(
        ("read_page", "call_8sQz", {"url": "https://nordlys.example/8/data"}, PAGE),
        ("read_page", "call_8sR0", {"url": "https://alba.example/mono-9"}, "Sound power 51 dB(A)."),
        seconds=7,
    )
    told.says(
        TABLE,
        12,
        thinking="Two of the three cite EN 12102. The Terma brochure names no protocol, so its 57 is "
        "not comparable; say so instead of ranking it.",
    )
    careful = told.says(
        "I would not rank them yet: only two of the three were measured by a laboratory, and neither "
        "below -7 °C. Ask the makers for the protocol at -10 °C first.",
        9,
        parent=read,
    )
    tree.label(careful, "more careful")
    answer = tree.children(read)[0].id
    tree.set_leaf(answer)
    tree.add_usage(input_tokens=5120, output_tokens=611, cost=0.0245)
    told.user("What is left of that at the neighbours' window?", 96)
    told.uses(
        (
            "python",
            "call_c0Lm",
            {"code": "from math import log10\nround(48 - 20 * log10(6) - 8 + 3, 1)"},
            "27.4",
        )
    )
    window = told.says(
        "About **27 dB(A)** for the Nordlys 8: 48 dB(A) of sound power, less 23.6 dB for 6 m in the "
        "open, plus 3 dB for the house wall behind it. Most rules for quiet areas ask for 35 dB(A) "
        "at night, so there is room for a second wall or a worse spot.",
        8,
    )
    tree.label(window, "noise at the window")
    told.user("And what do they cost with everything? Two offers would help.", 210)
    told.uses(
        ("web_search", "call_e7Ub", {"query": "Nordlys 8 price installed"}, {"error": "timed out"}),
        seconds=21,
    )
    told.uses(
        (
            "web_search",
            "call_e7Uc",
            {"query": "heat pump offer installed 8 kW 2026"},
            [
                {"shop": "Haustechnik Berg", "unit": "Nordlys 8", "price": 13100, "work": 6400},
                {"shop": "Wärme & Co.", "unit": "Alba Mono 9", "price": 9400, "work": 5900},
            ],
        )
    )
    costs = told.says(
        "Two offers, before any grant:\n\n"
        "1. **Nordlys 8**, Haustechnik Berg: 13,100 € + 6,400 € for the work\n"
        "2. **Alba Mono 9**, Wärme & Co.: 9,400 € + 5,900 €\n\n"
        "The quieter one costs 4,200 € more and saves about 110 € a year.",
        7,
    )
    tree.add_usage(input_tokens=9480, output_tokens=702, cost=0.0389)
    told.clock.wait(8 * 3600)
    tree.compact(
        "House of 1978, neighbours' window at 6 m. Quietest: Nordlys 8 (48 dB(A) at A-7, about "
        "27 dB(A) at the window; 13,100 € + 6,400 €). Cheaper: Alba Mono 9 (51 dB(A); 9,400 € + "
        "5,900 €). Terma AX7 was set aside: its figure names no protocol.",
        first,
        costs,
    )
    told.user("Take the quietest. What must be ready before it comes?", 40)
    ready = told.says(
        "Four things, in this order:\n\n"
        "- a **plinth** of concrete, 30 cm deep and free of frost\n"
        "- a **drain** for condensate that cannot freeze\n"
        "- a three-phase line with its own **16 A** fuse\n"
        "- larger radiators in the two north rooms, or 55 °C will be the rule\n\n"
        "The line comes first: electricians are booked for five weeks.",
        9,
    )
    told.user("The electrician asks: three-phase or single, and which breaker?", 1400)
    told.uses(
        (
            "search_notes",
            "call_k2Wd",
            {"words": "Nordlys fuse"},
            "Fuse: C16 A, three-phase (data sheet, p. 3)",
        )
    )
    told.says("Three-phase, **C16 A**, with a type B residual current device of its own.")
    tip = tree.leaf
    other = told.user("What changes if we insulate the attic first?", 300, parent=ready)
    tree.label(other, "attic first")
    told.says(
        "Then 6 kW are enough, and the smaller Nordlys 6 is 2 dB quieter. It delays the change by one "
        "heating season.",
        7,
    )
    tree.set_leaf(tip)
    tree.add_usage(input_tokens=3312, output_tokens=408, cost=0.0161)
    tree.annotate(
        name="A quiet heat pump",
        model="example-large",
        tags=["house", "2026"],
        summary="Which heat pump for a house with neighbours six metres away",
    )


def noise_survey(told: Told) -> None:
    """An agent with Anthropic blocks, which was stopped while a tool was at work."""
    told.add(1, {"role": "user", "content": "Collect what our neighbours measured at night."})
    told.add(
        4,
        {
            "role": "assistant",
            "content": [
                {
                    "type": "thinking",
                    "thinking": "The survey is a folder of CSV files; list it first.",
                },
                {
                    "type": "tool_use",
                    "id": "toolu_01",
                    "name": "list_files",
                    "input": {"path": "survey"},
                },
            ],
        },
    )
    result = {"type": "tool_result", "tool_use_id": "toolu_01", "content": "may-08.csv\nmay-09.csv"}
    told.add(1, {"role": "user", "content": [result]})
    told.add(
        5,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Two nights so far. I read both."},
                {
                    "type": "tool_use",
                    "id": "toolu_02",
                    "name": "read_file",
                    "input": {"path": "survey/may-08.csv"},
                },
            ],
        },
    )
    told.tree.annotate(name="Noise survey", model="example-small", end_reason="interrupted")
    told.tree.add_usage(input_tokens=912, output_tokens=118, cost=0.0007)


# -- the guide -------------------------------------------------------------------------------------


def porto(told: Told) -> None:
    """In Chinese: two tools, a correction, a deletion, a branch, a summary."""
    tree = told.tree
    first = told.chat("user", "帮我安排波尔图的周末：两个人，喜欢咖啡和书店，不想太赶。", 1)
    told.asks("weather", "call_w1", {"city": "Porto", "days": ["2026-05-16", "2026-05-17"]})
    told.answers("call_w1", {"2026-05-16": "晴，21 °C", "2026-05-17": "小雨，17 °C"})
    plan = told.chat(
        "assistant",
        "**周六（晴）**\n\n- 上午：沿杜罗河散步，从里贝拉到老桥\n- 下午：过桥去加亚新城，参观一家酒窖\n\n"
        "**周日（小雨）**\n\n- 上午：莱罗书店，人少的时候是九点半\n- 下午：Majestic 咖啡馆",
        7,
    )
    tree.label(plan, "周末计划")
    told.chat("user", "周日如果雨很大呢？", 65)
    rain = told.chat("assistant", "那就去书店。")
    tree.update(
        rain,
        {
            "role": "assistant",
            "content": "那就整天在室内：莱罗书店，然后是旁边的咖啡馆，最后听一场法多。",
        },
    )
    wrong = told.chat("user", "（发错了，请忽略）")
    told.clock.wait(3)
    tree.delete([wrong])
    told.asks(
        "book_table", "call_t1", {"place": "Majestic", "people": 2, "time": "2026-05-17T15:30"}
    )
    told.answers("call_t1", {"ok": True, "code": "MJ-2291"})
    booked = told.chat("assistant", "订好了：周日 15:30，两位，预订号 MJ-2291。")
    tree.compact(
        "两个人，喜欢咖啡和书店。周六河边和酒窖，周日书店；Majestic 已订周日 15:30（MJ-2291）。",
        first,
        rain,
    )
    told.chat("user", "谢谢！从机场怎么过去最方便？", 240)
    told.chat("assistant", "坐地铁 E 线（紫线）到 Trindade，约 30 分钟，每人 2.25 €。")
    told.chat(
        "assistant",
        "打车约 25 分钟，25 到 30 €；两个人带行李的话，我会选打车。",
        6,
        parent=tree.path()[-2].id,
    )
    tree.set_leaf(tree.children(tree.path()[-2].id)[0].id)
    assert booked in {entry.id for entry in tree.path()}
    tree.annotate(name="波尔图周末", model="example-large", tags=["旅行", "葡萄牙"])
    tree.add_usage(input_tokens=2204, output_tokens=391, cost=0.0102)


def porto_rain(told: Told) -> None:
    """What became of the plan in another session."""
    told.chat("user", "我们只看下雨的方案：周六也下雨怎么办？", 30)
    told.chat("assistant", "周六改去水晶宫花园旁的浪漫博物馆，中午在 Bolhão 市场吃饭。")


def packing(told: Told) -> None:
    """A short one, written as one batch."""
    told.clock.wait(1)
    told.tree.extend(
        [
            {"role": "system", "content": "You help two people pack for short trips. Be brief."},
            {"role": "user", "content": "What do we pack for Porto in May?"},
            {
                "role": "assistant",
                "content": "Layers, shoes for wet cobbles, and one umbrella for two.",
            },
        ]
    )
    told.tree.annotate(name="Packing", model="example-small")


def lisbon(told: Told) -> None:
    """A user's own, in two languages."""
    told.chat(
        "user", "Trams or hills? My mother comes along, she is 71 and speaks only Chinese.", 1
    )
    told.chat("assistant", "Trams up, hills down. Line 28 before nine; later it is full.")
    told.chat("user", "Say that so that I can send it to her.")
    told.chat(
        "assistant", "妈妈，我们上山坐电车，下山慢慢走。28 路要在早上九点以前坐，那时候有座位。"
    )
    told.tree.annotate(name="Lisbon with mother")
    told.tree.add_usage(input_tokens=310, output_tokens=96, cost=0.0009)


# -- beside the conversations ----------------------------------------------------------------------

STATE: list[tuple[str, str, str, Any]] = [
    ("researcher", "heat-pumps", "memory", {"facts": ["house of 1978", "window at 6 m", "prefers quiet"], "language": "en"}),
    ("researcher", "heat-pumps", "sources", [
        {"id": 1, "title": "Nordlys 8, technical data", "url": "https://nordlys.example/8/data"},
        {"id": 2, "title": "Alba Mono 9", "url": "https://alba.example/mono-9"},
    ]),
    ("guide", "porto", "bookings", {"MJ-2291": {"place": "Majestic", "people": 2, "time": "2026-05-17T15:30"}}),
    ("guide", "porto", "memory", {"喜欢": ["咖啡", "书店"], "节奏": "慢"}),
    ("anna", "lisbon", "memory", {"with": "mother", "walks": "downhill only"}),
]  # fmt: skip

NOTES = {
    "AGENTS.md": "# For all agents\n\nAnswer briefly. Name your sources. Prices in euros, times in local time.\n",
    "MEMORY.md": "- The house was built in 1978; the neighbours' window is 6 m away.\n- 两个人旅行，喜欢咖啡和书店，不赶时间。\n",
    "memory/2026-05-12.md": "# 2026-05-12\n\n## 16:24:51Z Note\n\nThe Nordlys 8 was chosen: quietest at -7 °C.\n\n"
    "## 16:51:07Z Note\n\nThe electrician needs five weeks. Ask before ordering.\n",
    "memory/2026-05-14.md": "# 2026-05-14\n\n## 18:29:12Z Note\n\nMajestic 已订：周日 15:30，MJ-2291。\n",
    "knowledge/KNOWLEDGE.md": "# Noise at night\n\nSound pressure = sound power - 20 log10(distance in m) - 8 dB; a wall "
    "behind the unit adds 3 dB.\n",
    ".gitignore": "/.workspace/\nsessions.json\n.*.tmp-*\n",
    ".gitattributes": "**/agents/*/sessions/*.jsonl text eol=lf merge=union\n",
    "anna/MEMORY.md": "- Travels with her mother, who speaks only Chinese.\n",
}  # fmt: skip
