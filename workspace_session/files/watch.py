"""Watching a workspace: one thread that looks at the logs whenever that may be worth it.

Notices of the operating system say where to look at once. Since they may be lost or late, all logs are
looked at from time to time as well: often while something is going on, about once a second otherwise,
and never for more than a small part of the time. What is told rests on the looking alone (`follow`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from workspace_session.files.follow import Choice, Following, WorkspaceEvent
from workspace_session.files.layout import Layout
from workspace_session.files.listings import LOG

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

logger = logging.getLogger("workspace_session")

Callback: TypeAlias = Callable[[WorkspaceEvent], object]
Start: TypeAlias = "Callable[[Callback, Callable[[], None]], Watch]"
"""Begins a watch, given what is to be told and what is to be called when it stops."""

EVERYWHERE: Final = ""  # the hint to look at all logs; any other is the path of one

_LIVELY = 5.0  # seconds that something is going on for after a notice
_SOON, _IDLE, _SELDOM = 0.1, 1.0, 10.0  # seconds between two looks at everything
_SHARE = 20  # looking may take one part in so many of the time
_POLL = 0.25  # seconds between two looks of watchdog's own, where the system gives no notice
_MANY = 32  # users: each that is listened to apart costs a thread
_ROOM = 256  # events that wait for a reader


# -- hints at where to look ------------------------------------------------------------------------


class Hints:
    """Hints, given by any thread and taken by one. The same hint twice is one: they never pile up."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._changed = threading.Condition()
        self.closed = False

    def add(self, path: str) -> None:
        """Give a hint."""
        with self._changed:
            self._paths.add(path)
            self._changed.notify()

    def close(self) -> None:
        """Wake whoever waits, now and from now on."""
        with self._changed:
            self.closed = True
            self._changed.notify()

    def take(self, timeout: float) -> set[str]:
        """All hints, once there are some, or none when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._paths or self.closed, timeout)
            paths, self._paths = self._paths, set()
            return paths


class Notices:
    """Listens below a root, though not below `.workspace/`, until it is stopped.

    A notice is a hint and nothing more: some are lost, some come late (watchdog holds a move back
    for half a second), some mean nothing.
    """

    def __init__(self, layout: Layout, hints: Hints, *, polling: bool) -> None:
        self._layout = layout
        self._handler, self._heard = _handler(hints)
        self._observer = _observer(polling=polling)
        self._watches: dict[tuple[Path, bool], ObservedWatch] = {}
        self._observer.start()

    def cover(self) -> None:
        """Listen to every directory that has sessions by now, and no more to those that have gone."""
        wanted = self._wanted()
        dead = {one.watch for one in self._observer.emitters if not one.is_alive()}
        for place, watch in list(self._watches.items()):
            if place not in wanted or watch in dead:
                del self._watches[place]
                self._observer.unschedule(watch)
        for path, recursive in wanted - self._watches.keys():
            self._watches[path, recursive] = self._observer.schedule(
                self._handler, os.fspath(path), recursive=recursive, event_filter=self._heard
            )

    def _wanted(self) -> set[tuple[Path, bool]]:
        root = self._layout.root
        namespaces = self._layout.namespaces()
        users = {self._layout.namespace(parts[:1]) for parts in namespaces if parts}
        if len(users) > _MANY:
            return {(root, True)}  # the hidden directory with it, which only costs time
        common = {self._layout.agent("any").directory.parent} if () in namespaces else set()
        places = {(path, True) for path in users | common if path.is_dir()}
        return places | ({(root, False)} if root.is_dir() else set())

    def stop(self) -> None:
        """Listen no more."""
        self._observer.stop()
        self._observer.join()


def _observer(*, polling: bool) -> BaseObserver:
    # Here, and below: only those who watch pay for importing watchdog.
    from watchdog.observers import Observer
    from watchdog.observers.polling import PollingObserver

    # A directory that is made while watchdog walks its parent is met twice, which it warns of and
    # which does no harm; nobody who watches a workspace could do anything about it.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, r"watchdog\.")
    return PollingObserver(timeout=_POLL) if polling else Observer()


def _handler(hints: Hints) -> tuple[FileSystemEventHandler, list[type[FileSystemEvent]]]:
    """What makes hints of notices, and the notices that it wants."""
    from watchdog import events

    class Handler(events.FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.is_directory:
                hints.add(EVERYWHERE)
                return
            for path in map(os.fsdecode, (event.src_path, event.dest_path)):
                if path.endswith(LOG):
                    hints.add(path)

    of_files = [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileMovedEvent,
        events.FileDeletedEvent,
    ]
    of_directories = [events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent]
    return Handler(), [*of_files, *of_directories]


# -- the watch -------------------------------------------------------------------------------------


class Watch:
    """Tells a callback what happens in a workspace, until it is stopped.

    The callback is called in one thread, one event after another. An exception in it is logged, and
    the watch goes on. While the callback takes its time, nothing piles up: the files are the queue.
    """

    def __init__(
        self,
        layout: Layout,
        callback: Callback,
        choice: Choice,
        *,
        polling: bool = False,
        existing: bool = False,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._layout, self._callback = layout, callback
        self._polling, self._existing = polling, existing
        self._on_stop = on_stop
        self._following = Following(layout, choice)
        self._hints = Hints()
        self._lively_until = self._looked = self._next_look = self._cost = 0.0
        self._unheard = ""
        self._begun = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="workspace-watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether it has not been stopped."""
        return not self._hints.closed

    def wait_until_begun(self) -> None:
        """Return when everything that is written from now on will be told."""
        self._begun.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self, *, wait: bool = True) -> None:
        """End it. Once this has returned, the callback is not called any more, unless `wait` is off."""
        self._hints.close()
        if self._on_stop is not None:
            self._on_stop()
        if wait and threading.current_thread() is not self._thread:
            self._thread.join()

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        notices = None
        try:
            notices = self._listen()
            self._begin(notices)
            while self.is_running:
                self._turn(notices)
        except OSError as error:  # the first look at the workspace failed
            self._failure = error
        finally:
            self.stop(wait=False)  # whatever the reason: nobody may wait for more
            self._begun.set()
            if notices is not None:
                notices.stop()

    def _listen(self) -> Notices | None:
        try:
            return Notices(self._layout, self._hints, polling=self._polling)
        except OSError as error:  # the system allows no more listeners
            self._say_unheard(error)
            return None

    def _begin(self, notices: Notices | None) -> None:
        self._cover(notices)  # before the look: nothing comes between the two
        events = self._following.begin()
        if self._existing:
            self._begun.set()  # nothing can be missed
            self._tell(events)
        else:
            for _event in events:
                if not self.is_running:
                    break
        self._looked = self._next_look = time.monotonic()
        self._begun.set()

    def _turn(self, notices: Notices | None) -> None:
        hints = self._hints.take(max(0.0, self._next_look - time.monotonic()))
        now = time.monotonic()
        if hints or notices is None:
            self._lively_until = now + _LIVELY
            self._look_within(self._pace(now))
        if EVERYWHERE in hints:
            self._look_within(self._cost)
        for path in hints:
            self._tell(self._following.look_at(path))
        if now >= self._next_look and self.is_running:
            self._look_everywhere(notices)

    def _look_everywhere(self, notices: Notices | None) -> None:
        started = time.monotonic()
        try:
            self._cover(notices)
            self._tell(self._following.look())
        except OSError as error:  # it may be better the next time
            logger.warning("could not look at the workspace: %s", error)
        self._looked = time.monotonic()
        self._cost = self._looked - started
        self._next_look = self._looked + self._pace(self._looked)

    def _look_within(self, seconds: float) -> None:
        self._next_look = min(self._next_look, self._looked + seconds)

    def _pace(self, now: float) -> float:
        """How long to wait after a look at everything."""
        lively = now < self._lively_until or self._following.is_pending
        least, most = (_SOON, _IDLE) if lively else (_IDLE, _SELDOM)
        return min(max(least, _SHARE * self._cost), most)

    def _cover(self, notices: Notices | None) -> None:
        if notices is not None:
            try:
                notices.cover()
            except OSError as error:  # too many directories for the system, or one has just gone
                self._say_unheard(error)
                self._lively_until = time.monotonic() + _LIVELY

    def _tell(self, events: Iterable[WorkspaceEvent]) -> None:
        for event in events:
            if not self.is_running:
                return
            try:
                self._callback(event)
            except Exception:
                logger.exception("the callback of a watch failed")

    def _say_unheard(self, error: OSError) -> None:
        if str(error) != self._unheard:
            logger.warning("no notices from the system, so the files are looked at: %s", error)
        self._unheard = str(error)


# -- the same, to iterate over ---------------------------------------------------------------------


class Mailbox:
    """A queue with a limit that can be closed from either side.

    When it is full the watch waits, and reads on from the files later: a slow reader loses nothing
    and costs no memory.
    """

    def __init__(self) -> None:
        self._events: deque[WorkspaceEvent] = deque()
        self._changed = threading.Condition()
        self.closed = False
        self.on_change: Callable[[], None] | None = None

    def put(self, event: WorkspaceEvent) -> None:
        """Add an event, when there is room."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) < _ROOM or self.closed)
            if not self.closed:
                self._events.append(event)
            self._changed.notify_all()
        self._say()

    def take(self, timeout: float | None) -> WorkspaceEvent | None:
        """The next event; None when the time is over or the mailbox was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self.closed, timeout)
            event = self._events.popleft() if self._events else None
            self._changed.notify_all()
            return event

    def close(self) -> None:
        """Let nobody wait any more, and forget what was not taken."""
        with self._changed:
            self.closed = True
            self._events.clear()
            self._changed.notify_all()
        self._say()

    def _say(self) -> None:
        if self.on_change is not None:
            self.on_change()


class Events:
    """The events of a workspace, one after another; a context manager, which ends them.

    With a `timeout`, the iteration ends when nothing has happened for so many seconds.
    """

    def __init__(self, start: Start, timeout: float | None) -> None:
        self._mailbox = Mailbox()
        self._timeout = timeout
        self._watch = start(self._mailbox.put, self._mailbox.close)
        self._watch.wait_until_begun()
        weakref.finalize(self, self._watch.stop, wait=False)  # for those who leave a loop early

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WorkspaceEvent:
        event = self._mailbox.take(self._timeout)
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """End the iteration, from any thread."""
        self._watch.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncEvents:
    """The same for `async for`. Inside `async with`, all that is written from then on arrives."""

    def __init__(self, start: Start, timeout: float | None) -> None:
        self._mailbox = Mailbox()
        self._timeout = timeout
        self._woken = asyncio.Event()
        self._listening = False
        self._watch = start(self._mailbox.put, self._mailbox.close)
        weakref.finalize(self, self._watch.stop, wait=False)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WorkspaceEvent:
        await self._listen()
        while True:
            self._woken.clear()
            event = self._mailbox.take(0)
            if event is not None:
                return event
            if self._mailbox.closed:
                raise StopAsyncIteration
            try:
                await asyncio.wait_for(self._woken.wait(), self._timeout)
            except TimeoutError:
                raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """End the iteration."""
        await asyncio.to_thread(self._watch.stop)

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _listen(self) -> None:
        if self._listening:
            return
        self._mailbox.on_change = _waker(asyncio.get_running_loop(), self._woken)
        self._listening = True
        await asyncio.to_thread(self._watch.wait_until_begun)


def _waker(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> Callable[[], None]:
    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(woken.set)

    return wake
