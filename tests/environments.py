"""Virtual environments for SDKs that cannot live beside each other, or beside what the tests need.

Each has one SDK as pip installs it, and sees our package and the test tools of the running
environment behind it. They are kept in the project's directory, so that only the first run waits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".venv-sdks"


class NotInstalled(Exception):
    """An environment could not be made; the text is what pip says."""


def environment(name: str, *requirements: str) -> Path:
    """The Python of the environment of that name, which is made if it is not there."""
    directory = KEPT / name
    python = directory / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    made_of = directory / "made-of.json"
    wanted = json.dumps([sys.version, sys.prefix, *requirements])
    KEPT.mkdir(exist_ok=True)
    with FileLock(KEPT / f"{name}.lock"):
        if not made_of.exists() or made_of.read_text() != wanted:
            venv.create(directory, clear=True, with_pip=False)
            _install(python, requirements)
            _let_see(python, directory)
            made_of.write_text(wanted)
    return python


def _install(python: Path, requirements: tuple[str, ...]) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", *requirements],
        capture_output=True,
        text=True,
        timeout=240,
    )
    if done.returncode != 0:
        raise NotInstalled(done.stderr.strip()[-500:])


def _let_see(python: Path, directory: Path) -> None:
    """Behind its own packages: our package from here, and the test tools of this environment."""
    line = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-c", line], capture_output=True, text=True, check=True)
    behind = [str(ROOT), str(ROOT / "tests"), sysconfig.get_path("purelib")]
    (Path(done.stdout.strip()) / "behind.pth").write_text("\n".join(behind) + "\n")


def run_tests(python: Path, suite: Path) -> subprocess.CompletedProcess[str]:
    """Run a suite in an environment: all that was said, and 0 when all is well."""
    # Warnings are the SDK's own: an error of ours is raised, and fails a test.
    options = ["-o", "addopts=", "-o", "filterwarnings=default", "--timeout=100", "--tb=native"]
    plugins = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist"]
    return subprocess.run(
        [python, "-m", "pytest", "-q", *plugins, *options, f"--confcutdir={suite.parent}", suite],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )


def examples_for(page: Path, environment: str, copy: Path) -> Path:
    """A copy of a page with those examples alone that need an environment, as ones to be run."""
    text = page.read_text("utf-8").replace("```python\n", "```elsewhere\n")
    mine = f"```python {environment}\n"
    head, *sections = text.split("\n## ")
    chosen = [section for section in sections if mine in section]
    copy.write_text("\n## ".join([head, *chosen]).replace(mine, "```python\n"), "utf-8")
    return copy
