"""A real browser: headless Chromium, spoken to through its debugging pipe.

Every request that a page makes and every complaint of the browser is kept. Nothing beyond the standard
library is needed, and no port is opened.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
    "--hide-scrollbars", "--force-device-scale-factor=1",
)  # fmt: skip


def chromium() -> str | None:
    """The browser there is, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One Chromium with one page."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        # The pipe is file 3 and file 4 of the browser.
        line = f'exec 3<&{their_in} 4>&{their_out}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "browser", program, *FLAGS, f"--user-data-dir={self._home.name}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(their_in, their_out),
        )
        os.close(their_in)
        os.close(their_out)
        self._rest, self._count, self._session = b"", 0, None
        self._events: deque[dict[str, Any]] = deque()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)  # which it takes for a goodbye
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._home.cleanup()

    # -- what a page is asked ----------------------------------------------------------------------

    def open(
        self,
        page: Path,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        phone: bool = False,
    ) -> None:
        """Show a file."""
        self.requests.clear()
        self.complaints.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        self.do("Page.navigate", url="about:blank")
        self.do("Page.navigate", url=page.as_uri())
        self.wait(
            "document.readyState === 'complete' && location.protocol === 'file:'", seconds=120
        )

    def run(self, script: str) -> Any:
        """The value of an expression, promises awaited."""
        told = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise AssertionError(told["exceptionDetails"])
        return told["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> None:
        """Until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < deadline, f"never true: {script}"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of an element."""
        box = self.run(
            f"(e => {{ const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.do(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def type(self, text: str) -> None:
        """Put a text where the cursor is."""
        self.do("Input.insertText", text=text)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        codes = {"Enter": 13, "Escape": 27, "/": 191}
        text = {"Enter": "\r", "/": "/"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.do(
                "Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=codes[key], modifiers=8 if shift else 0,
            )  # fmt: skip

    def picture(self, path: Path) -> None:
        """Store what is shown."""
        path.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"]))

    # -- the pipe ----------------------------------------------------------------------------------

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; what it answers."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._count:
            self._note(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        noters: dict[str, Callable[[dict[str, Any]], None]] = {
            "Network.requestWillBeSent": lambda told: self.requests.append(told["request"]["url"]),
            "Log.entryAdded": lambda told: self.complaints.append(told["entry"]["text"]),
            "Runtime.exceptionThrown": lambda told: self.complaints.append(str(told)),
            "Runtime.consoleAPICalled": lambda told: self.complaints.append(str(told["args"])),
            "Page.javascriptDialogOpening": lambda told: self.complaints.append(told["message"]),
        }
        if noter := noters.get(event.get("method", "")):
            noter(event["params"])
