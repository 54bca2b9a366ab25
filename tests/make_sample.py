"""Makes `sample_workspace/`: a small believable workspace, the same to the byte each time.

    python tests/make_sample.py [DIRECTORY]

Only the clock and the random bits are held; everything else is the library at work. What is said is in
`sample_stories`.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import sample_stories as stories

from workspace_session import Workspace

SAMPLE = Path(__file__).parent.parent / "sample_workspace"


class HeldClock:
    """A clock that moves when it is told to, and a little with every look at it."""

    def __init__(self) -> None:
        self.now = 0

    def set(self, moment: str) -> None:
        self.now = int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()) * 10**9

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * 10**9)

    def __call__(self) -> int:
        self.wait(0.004_731)
        return self.now


@contextmanager
def held_clock() -> Iterator[HeldClock]:
    """Let time pass as the stories say, with random bits that are no surprise."""
    clock, bits = HeldClock(), random.Random(20260512)
    module = "workspace_session.model.clock"
    with (
        mock.patch(f"{module}.time.time_ns", clock),
        mock.patch(f"{module}.os.urandom", bits.randbytes),
    ):
        yield clock


def build(root: Path, clock: HeldClock) -> None:
    """Write the workspace into an empty directory."""
    workspace = Workspace(root, durability="os")
    researcher, guide = workspace.agent("researcher"), workspace.agent("guide")
    anna = workspace.agent("guide", user="anna")
    for moment, agent, session_id, story in (
        ("2026-05-12T07:58:12", researcher, "heat-pumps", stories.heat_pumps),
        ("2026-05-13T14:02:40", researcher, "noise-survey", stories.noise_survey),
        ("2026-05-14T18:21:05", guide, "porto", stories.porto),
        ("2026-05-15T09:30:00", guide, "packing", stories.packing),
        ("2026-05-15T19:47:31", anna, "lisbon", stories.lisbon),
    ):
        clock.set(moment)
        story(stories.Told(agent.tree(session_id), clock))
    clock.set("2026-05-16T06:55:00")
    guide.tree("porto").fork(
        guide.tree("porto").path()[3].id, guide.tree("porto-rain"), name="雨天方案"
    )
    stories.porto_rain(stories.Told(guide.tree("porto-rain"), clock))
    for agent, session_id, key, value in stories.STATE:
        owner = {"researcher": researcher, "guide": guide, "anna": anna}[agent]
        save = owner.state.save_list if isinstance(value, list) else owner.state.save
        save(session_id, key, value)
    for name, text in stories.NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    workspace.close()
    shutil.rmtree(root / ".workspace")


def files_of(root: Path) -> dict[str, bytes]:
    """What a workspace holds, by path; the index is derived and left out."""
    paths = (path for path in root.rglob("*") if path.is_file() and path.name != "sessions.json")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(paths)}


def made() -> dict[str, bytes]:
    """The files of the sample workspace, made anew."""
    with tempfile.TemporaryDirectory() as directory, held_clock() as clock:
        build(Path(directory), clock)
        return files_of(Path(directory))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    shutil.rmtree(target, ignore_errors=True)
    for name, data in made().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
