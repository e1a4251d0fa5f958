"""Work on many things in processes beside this one, whose results are files."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Beside:
    """Processes at work; none where none could be started."""

    children: tuple[int, ...] = ()

    def wait(self) -> None:
        """Until all have ended, also those that were waited for before."""
        for child in self.children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A process that waits for what it is given; none where none could be started."""

    process: Beside = Beside()
    pipe: BinaryIO | None = None

    def give(self, work: object) -> None:
        """Give it something, pickled; any process forked since may do that."""
        if self.pipe is not None:
            given = os.fdopen(self.pipe.fileno(), "wb", closefd=False)
            with contextlib.suppress(BrokenPipeError), given:
                pickle.dump(work, given)

    def finish(self) -> None:
        """Give nothing more, and wait until all is done; who is interrupted waits for nothing."""
        if self.pipe is not None:
            self.pipe.close()
        try:
            self.process.wait()
        except BaseException:
            self._end()
            raise

    def abandon(self) -> None:
        """End it and what it has begun, whatever is undone."""
        self._end()
        self.finish()

    def _end(self) -> None:
        for leader in self.process.children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader, signal.SIGTERM)


def begun_waiting(work: Callable[[Iterator[Any]], object]) -> Waiting:
    """Begin a process that does the work on what it will be given, which may come piece by piece.

    It shares what this process holds at that moment, and leads a group of processes of its own. A
    failure is as that of `begun_beside`.
    """
    if sys.platform != "linux":
        return Waiting()
    given, giving = os.pipe()

    def wait_and_work(_: None) -> None:
        os.setpgid(0, 0)
        os.close(giving)
        with os.fdopen(given, "rb") as pipe:
            work(_pieces(pipe))

    child = _forked(wait_and_work, [None])
    with contextlib.suppress(OSError):  # it may have come first, or have ended
        os.setpgid(child, child)
    os.close(given)
    return Waiting(Beside((child,)), os.fdopen(giving, "wb", buffering=0))


def _pieces(pipe: BinaryIO) -> Iterator[Any]:
    """Until the last process that could give more has ended or said so."""
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(pipe)  # noqa: S301  what this very program wrote


def begun_beside(work: Callable[[ItemT], object], items: Sequence[ItemT], most: int) -> Beside:
    """Begin the work on all items in at most so many processes.

    Only what the work writes to files remains. A process that fails leaves its items undone, and
    where no process can be forked all are: callers do what they then miss themselves, and meet the
    error. Forked, not spawned: the items need no pickling, and memory is shared.
    """
    if sys.platform != "linux":
        return Beside()
    count = min(most, len(os.sched_getaffinity(0)), len(items))
    return Beside(tuple(_forked(work, items[at::count]) for at in range(count)))


def _forked(work: Callable[[ItemT], object], items: Sequence[ItemT]) -> int:
    child = os.fork()
    if child:
        return child
    _hush()
    # The parent's objects stay where they are: a search for cycles would copy all of them.
    gc.freeze()
    try:
        for item in items:
            work(item)
    finally:
        # Nothing of the parent is to be flushed, closed or caught here.
        os._exit(0)


def _hush() -> None:
    """Show no message of this process; work that listens for messages itself still hears them."""
    for logger in (logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)):
        logger.handlers.clear()
    logging.root.addHandler(logging.NullHandler())
