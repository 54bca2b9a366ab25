"""Makes `sample_workspace/`: a small believable workspace, the same to the byte each time.

    python tests/make_sample.py [DIRECTORY]

Only the clock and the random bits are held; everything else is the library at work.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from unittest import mock

from workspace_session import SessionTree, Workspace

SAMPLE = Path(__file__).parent.parent / "sample_workspace"
_START = 1_778_832_000_000_000_000  # 2026-05-15T08:00:00Z, in nanoseconds
_STEP = 7_250_000_000


def user(text: str) -> dict:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def assistant(text: str) -> dict:
    return {"role": "assistant", "parts": [{"type": "text", "text": text}]}


def tool(name: str, call_id: str, given: dict, output: object) -> dict:
    part = {
        "type": f"tool-{name}",
        "toolCallId": call_id,
        "state": "output-available",
        "input": given,
        "output": output,
    }
    return {"role": "assistant", "parts": [part]}


def research(tree: SessionTree) -> None:
    """A literature question, with a search tool, a second answer and a summary."""
    tree.append({"id": "q1", **user("Which heat pumps stay quiet below -10 °C?")})
    tree.append(
        {"id": "t1", **tool("web_search", "call-1", {"q": "heat pump noise cold"}, ["12 pages"])}
    )
    tree.append(
        {"id": "a1", **assistant("Three makers publish figures: 48, 51 and 57 dB(A) at -10 °C.")}
    )
    tree.append(
        {"id": "a1b", **assistant("Too little data: only three makers publish figures.")},
        parent="t1",
    )
    tree.label("a1b", "cautious answer")
    tree.set_leaf("a1")
    tree.append({"id": "q2", **user("And what do they cost?")})
    tree.append(
        {"id": "t2", **tool("web_search", "call-2", {"q": "prices 2026"}, {"error": "timeout"})}
    )
    tree.append(
        {"id": "t3", **tool("web_search", "call-3", {"q": "heat pump prices"}, ["3 offers"])}
    )
    tree.append({"id": "a2", **assistant("Between 9,400 € and 13,100 €, without the work.")})
    tree.compact("Three quiet heat pumps (48-57 dB(A) at -10 °C), 9,400-13,100 € each.", "q1", "a2")
    tree.append({"id": "q3", **user("Take the quietest. What must be ready before it comes?")})
    tree.append(
        {"id": "a3", **assistant("A plinth, a drain that cannot freeze, and 16 A three-phase.")}
    )
    tree.annotate(name="Heat pumps", model="scripted-1", tags=["house", "2026"])
    tree.add_usage(input_tokens=1840, output_tokens=296, cost=0.0123)


def travel(tree: SessionTree) -> None:
    """The same in Chinese, with a correction and a deletion."""
    tree.append({"id": "z1", **user("帮我安排波尔图的周末，两个人，喜欢咖啡。")})
    tree.append(
        {"id": "z2", **tool("weather", "call-9", {"city": "Porto"}, {"sat": "晴", "sun": "小雨"})}
    )
    tree.append({"id": "z3", **assistant("周六去河边散步，周日参观酒窖。")})
    tree.append({"id": "z4", **user("周日下雨的话呢？")})
    tree.append({"id": "z5", **assistant("改去书店。")})
    tree.update("z5", assistant("改去莱罗书店，旁边有一家很好的咖啡馆。"))
    tree.append({"id": "z6", **user("（发错了）")})
    tree.delete(["z6"])
    tree.annotate(name="波尔图周末")


def build(root: Path) -> None:
    """Write the workspace into an empty directory."""
    workspace = Workspace(root, durability="os")
    researcher, guide = workspace.agent("researcher"), workspace.agent("guide")
    research(researcher.tree("heat-pumps"))
    travel(guide.tree("porto"))
    notes = guide.tree("packing")
    notes.extend([user("What do we pack?"), assistant("Layers, and one umbrella for two.")])
    anna = workspace.agent("guide", user="anna")
    anna.tree("lisbon").extend([user("Trams or hills?"), assistant("Trams up, hills down.")])
    researcher.state.save("heat-pumps", "memory", {"facts": ["prefers quiet", "house of 1978"]})
    researcher.state.save_list("heat-pumps", "sources", [{"id": 1, "title": "Noise in the cold"}])
    anna.state.save("lisbon", "memory", {"walks": True})
    (root / "AGENTS.md").write_text("Answer briefly. Name your sources.\n", "utf-8")
    (root / "MEMORY.md").write_text("- The house was built in 1978.\n- 喜欢咖啡。\n", "utf-8")
    (root / "memory").mkdir()
    note = "# 2026-05-15\n\n## 08:01:40Z Note\n\nThe quietest heat pump was chosen.\n"
    (root / "memory" / "2026-05-15.md").write_text(note, "utf-8")
    shutil.rmtree(root / ".workspace")


@contextmanager
def held_clock() -> Iterator[None]:
    """Let each entry come some seconds after the one before, with bits that are no surprise."""
    ticks, draws = count(_START, _STEP), count(1)
    clock = "workspace_session.model.clock"
    with (
        mock.patch(f"{clock}.time.time_ns", side_effect=ticks),
        mock.patch(f"{clock}.os.urandom", lambda size: next(draws).to_bytes(size, "big")),
    ):
        yield


def files_of(root: Path) -> dict[str, bytes]:
    """What a workspace holds, by path; the index is derived and left out."""
    paths = (path for path in root.rglob("*") if path.is_file() and path.name != "sessions.json")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(paths)}


def made() -> dict[str, bytes]:
    """The files of the sample workspace, made anew."""
    with tempfile.TemporaryDirectory() as directory, held_clock():
        build(Path(directory))
        return files_of(Path(directory))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    shutil.rmtree(target, ignore_errors=True)
    for name, data in made().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
